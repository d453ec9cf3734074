// Problems and amounts, said as people say them.

import { Gone, untilBack } from "./api.js";

const line = document.getElementById("problem");

/** Say what went wrong; where the server is gone, wait for it. */
export function complain(problem) {
  if (problem instanceof Gone) {
    untilBack();
    return;
  }
  line.textContent = problem.message;
  line.hidden = false;
}

/** Nothing is wrong any more. */
export function settle() {
  line.hidden = true;
}

export function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
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
