// Problems and amounts, said as people say them.

import { Gone, untilBack } from "./api.js";

const lines = [...document.querySelectorAll(".problem")];  // one per page

/** Say what went wrong; where the server is gone, wait for it. */
export function complain(problem) {
  if (problem instanceof Gone) {
    untilBack();
    return;
  }
  const line = lines.find((each) => !each.closest("[data-page]").hidden) ?? lines[0];
  line.textContent = problem.message;
  line.hidden = false;
}

/** Nothing is wrong any more. */
export function settle() {
  for (const line of lines) line.hidden = true;
}

export function duration(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function small(number) {
  return Number(number.toPrecision(3)).toString();
}

export function moment(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** What a picture is called: samples by their title without the year. */
export function called(picture) {
  if (!picture) return "a deleted picture";
  return picture.title ? picture.title.replace(/ \(.*\)$/, "") : picture.name;
}
