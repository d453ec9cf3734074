// Questions to the server, and what went wrong in plain words.

export class Problem extends Error {}
export class Gone extends Problem {}

const SILENT = "The studio does not answer. If it was closed, start it again; this page goes on by itself.";

/** The answer to a request: JSON, or the raw response where `raw` is set. */
export async function ask(path, { method = "GET", body, raw = false } = {}) {
  const json = body !== undefined && !(body instanceof Blob);
  let response;
  try {
    response = await fetch(path, {
      method,
      body: json ? JSON.stringify(body) : body,
      headers: json ? { "content-type": "application/json" } : {},
    });
  } catch {
    throw new Gone(SILENT);
  }
  if (!response.ok) throw new Problem(await sentence(response));
  if (raw || response.status === 204) return response;
  return response.json();
}

/** Give a picture: what the server knows of it then. */
export function give(file) {
  return ask(`/api/pictures?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
}

async function sentence(response) {
  try {
    const { detail } = await response.json();
    // A sentence begins with a capital letter, unless with the name of a file.
    const first = /^[a-z_]+[ :]/.test(detail) ? detail[0].toUpperCase() : detail[0];
    return first + detail.slice(1) + (/[.!?]$/.test(detail) ? "" : ".");
  } catch {
    return `Something went wrong inside the studio (${response.status}); its terminal says more.`;
  }
}

/** Wait until the server answers again, saying so meanwhile. */
export async function untilBack() {
  const banner = document.getElementById("gone");
  banner.textContent = SILENT;
  banner.hidden = false;
  for (;;) {
    await new Promise((done) => setTimeout(done, 1500));
    try {
      await fetch("/api/settings");
      banner.hidden = true;
      return;
    } catch { /* not yet */ }
  }
}
