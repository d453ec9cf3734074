// What the page asks of the server. An answer that does not come is asked for again until it
// does: a vote keeps its key, so it counts once however often it is sent.

const LONGEST_WAIT = 8000;

export class Refused extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export function word() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const pause = (milliseconds) => new Promise((wake) => setTimeout(wake, milliseconds));

// `tell` hears whether the server is away; a server that is only being restarted comes back.
export async function ask(method, path, { body, tell = () => {} } = {}) {
  for (let wait = 500; ; wait = Math.min(wait * 2, LONGEST_WAIT)) {
    let answer = null;
    try {
      answer = await fetch(`/api/${path}`, {
        method,
        headers: body ? { "content-type": "application/json" } : {},
        body: body && JSON.stringify(body),
      });
      const content = await answer.json();
      if (answer.ok) {
        tell(false);
        return content;
      }
      if (answer.status < 500) {
        tell(false);
        throw new Refused(answer.status, content.detail);
      }
    } catch (problem) {
      if (problem instanceof Refused) throw problem;
    }
    tell(true);
    await pause(wait);
  }
}

export const study = (options) => ask("GET", "study", options);
export const join = (who, options) => ask("PUT", `participants/${who}`, options);
export const progress = (who, options) => ask("GET", `participants/${who}`, options);
export const withdraw = (who, key, options) => ask("DELETE", `participants/${who}/votes/${key}`, options);
export const vote = (who, key, choice, options) =>
  ask("PUT", `participants/${who}/votes/${key}`, { ...options, body: choice });
