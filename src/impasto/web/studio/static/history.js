// What was painted before.

import { ask, Gone, untilBack } from "./api.js";
import { adopt } from "./wish.js";
import { called, complain, duration, moment, settle } from "./words.js";

const $ = (id) => document.getElementById(id);
const OPEN = ["waiting", "painting"];
const PAGE = 24;
const AGAIN = 3000;  // milliseconds between looks while something is being painted
let oldest = null;
let timer = 0;
let shown = "";  // ids and states of what is on the page

export function history() {
  $("more").addEventListener("click", () => load(oldest));
}

/** Show the newest. */
export function refresh() {
  return load(null);
}

function look() {
  if (!$("history").hidden) load(null);
}

async function load(before) {
  try {
    const { runs, more } = await ask(`/api/runs?limit=${PAGE}${before === null ? "" : `&before=${before}`}`);
    if (before === null) {
      clearTimeout(timer);
      if (runs.some(({ state }) => OPEN.includes(state))) timer = setTimeout(look, AGAIN);
      const states = JSON.stringify(runs.map(({ id, state }) => [id, state]));
      if (shown === states) return;  // as it is: nobody loses their place
      shown = states;
      $("runs").replaceChildren();
    }
    $("runs").append(...runs.map(card));
    $("more").hidden = !more;
    $("history-empty").hidden = $("runs").childElementCount > 0;
    oldest = runs.at(-1)?.created ?? oldest;
  } catch (problem) {
    if (!(problem instanceof Gone)) return complain(problem);
    await untilBack();
    load(before);
  }
}

function card(run) {
  const item = element("li", "card");
  const title = `${called(run.content)} in the style of ${called(run.style)}`;
  const frame = element("a", "frame");
  frame.href = `#/run/${run.id}`;
  frame.setAttribute("aria-label", `${title}, open`);
  frame.append(picture(run, frame));
  const about = element("p", "about", [run.recipe.method, run.state === "done" ? duration(run.seconds) : "", moment(run.created)].filter(Boolean).join(" · "));
  item.append(frame, element("p", "title", title), about);
  if (run.state !== "done") {
    const words = { failed: "did not work", interrupted: "interrupted", waiting: "waiting", painting: "being painted" };
    about.prepend(element("span", run.state === "failed" ? "tag bad" : "tag", words[run.state]), " ");
  }
  item.append(acts(run, item));
  return item;
}

function picture(run, frame) {
  const image = new Image();
  image.alt = "";
  image.loading = "lazy";
  if (run.state === "done") image.src = `/api/runs/${run.id}/thumb`;
  else if (run.content) {
    image.src = `/api/pictures/${run.content.id}/view?side=320`;
    frame.classList.add("faint");
  } else return element("span", "", "no picture");
  return image;
}

function acts(run, item) {
  const box = element("div", "acts");
  const whole = run.content && run.style;
  if (whole && (run.state === "interrupted" || run.state === "failed")) {
    box.append(button(run.state === "failed" ? "Try again" : "Go on", async () => {
      await ask(`/api/runs/${run.id}/again`, { method: "POST" });
      location.hash = `#/run/${run.id}`;
    }));
  }
  if (whole) {
    box.append(button("Again with …", () => {
      adopt(run);
      location.hash = "#/";
    }));
  }
  if (!OPEN.includes(run.state)) box.append(remover(run, item));
  return box;
}

/** Deletes at the second press: there is no way back. */
function remover(run, item) {
  const made = button("Delete", async () => {
    if (made.textContent === "Delete") {
      made.textContent = "Really?";
      setTimeout(() => { made.textContent = "Delete"; }, 4000);
      return;
    }
    await ask(`/api/runs/${run.id}`, { method: "DELETE" });
    (item.nextElementSibling ?? item.previousElementSibling)?.querySelector("a").focus();
    item.remove();
    shown = "";
    $("history-empty").hidden = $("runs").childElementCount > 0;
  });
  made.className = "delete";
  return made;
}

function button(words, action) {
  const made = element("button", "", words);
  made.type = "button";
  made.addEventListener("click", async () => {
    try {
      settle();
      await action();
    } catch (problem) {
      complain(problem);
    }
  });
  return made;
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}
