// The page: what is known, what is wished for, which view is open.

import { ask, Gone, untilBack } from "./api.js";
import { equalizer } from "./equalizer.js";
import { history, refresh } from "./history.js";
import { panel } from "./panel.js";
import { put, stage } from "./stage.js";
import { wells } from "./wells.js";
import { known, request, watch, wish } from "./wish.js";
import { complain, settle } from "./words.js";

const $ = (id) => document.getElementById(id);
const THEMES = { auto: "as the system", light: "light", dark: "dark" };

theme();
start();
for (const kind of ["dragover", "drop"]) {
  addEventListener(kind, (event) => event.preventDefault());  // a file dropped beside a well is not opened
}

async function start() {
  let schema, samples;
  try {
    [schema, samples] = await Promise.all([ask("/api/settings"), ask("/api/samples")]);
  } catch (problem) {
    if (!(problem instanceof Gone)) return complain(problem);
    await untilBack();
    return start();
  }
  Object.assign(known, schema);
  known.defaults = Object.fromEntries(schema.settings.map((each) => [each.name, each.default]));
  const first = (pictures, id) => pictures.find((each) => each.id === id) ?? pictures[0] ?? null;
  Object.assign(wish, { content: first(samples.photos, "astronaut"), style: first(samples.paintings, "cypresses") });
  wells(samples);
  panel();
  equalizer();
  stage();
  history();
  $("panel").addEventListener("submit", paint);
  watch(() => { $("start").disabled = !(wish.content && wish.style); });
  addEventListener("hashchange", route);
  document.addEventListener("runs", () => { if (!$("history").hidden) refresh(); });
  if (!location.hash) await reopen();
  route();
}

/** A run at work is what one comes back for, or the last one if it was cut off. */
async function reopen() {
  const { runs } = await ask("/api/runs?limit=20");
  const open = ["painting", "waiting"].map((state) => runs.find((run) => run.state === state)).find(Boolean)
    ?? runs.slice(0, 1).find((run) => run.state === "interrupted");
  if (open) window.history.replaceState(null, "", `#/run/${open.id}`);
}

async function paint(event) {
  event.preventDefault();
  settle();
  $("start").disabled = true;
  try {
    const run = await ask("/api/runs", { method: "POST", body: request() });
    location.hash = `#/run/${run.id}`;
    if (matchMedia("(max-width: 900px)").matches) $("stage").scrollIntoView();
  } catch (problem) {
    complain(problem);
  } finally {
    $("start").disabled = false;
  }
}

function route() {
  const [, view, id] = location.hash.split("/");
  const page = view === "history" ? "history" : "paint";
  for (const each of document.querySelectorAll("[data-page]")) each.hidden = each.dataset.page !== page;
  for (const link of document.querySelectorAll("[data-view]")) {
    if (link.dataset.view === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = page === "history" ? "History – Impasto Studio" : "Impasto Studio";
  if (page === "history") refresh();
  else put(view === "run" ? id : null);
}

function theme() {
  const names = Object.keys(THEMES);
  const show = (name) => {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    $("theme").setAttribute("aria-label", `Colors: ${THEMES[name]}`);
    $("theme").title = `Colors: ${THEMES[name]}`;
  };
  let now = localStorage.getItem("theme") ?? "auto";
  if (!(now in THEMES)) now = "auto";
  show(now);
  $("theme").addEventListener("click", () => {
    now = names[(names.indexOf(now) + 1) % names.length];
    localStorage.setItem("theme", now);
    show(now);
  });
}
