// The participant's random word, kept in this browser so that one can go on later. Where the
// browser keeps nothing, it lasts as long as the page.

let kept = null;
const name = (study) => `impasto-study-${study}`;

export function recall(study) {
  try {
    return localStorage.getItem(name(study)) ?? kept;
  } catch {
    return kept;
  }
}

export function remember(study, who) {
  kept = who;
  try {
    localStorage.setItem(name(study), who);
  } catch {
    // a private window: nothing to be done
  }
}

export function forget(study) {
  kept = null;
  try {
    localStorage.removeItem(name(study));
  } catch {
    // as above
  }
}
