// The picture: growing, finished, compared, enlarged.

import { ask, Gone, Problem, untilBack } from "./api.js";
import { curve } from "./curve.js";
import { inspection } from "./inspection.js";
import { adopt, watch, wish } from "./wish.js";
import { called, complain, duration } from "./words.js";

const $ = (id) => document.getElementById(id);
const ENDS = {
  steps: "Finished",
  done: "Finished",
  flat: "Finished: more steps would change little",
  settled: "Finished by the rule of the paper",
  zero: "Finished: nothing is left to do",
  converged: "Finished: nothing is left to do",
  budget: "Finished in the time it was given",
  stopped: "Stopped; the best picture so far is kept",
};

let shown = null;  // the run on the stage
let source = null;  // its events
let losses = [];
let zoom = "fit";
let turn = 0;  // counts what was put on the stage
let natural = [3, 2];  // width and height of the picture

export function stage() {
  $("split").addEventListener("input", () => {
    $("canvas").style.setProperty("--split", `${$("split").value}%`);
  });
  for (const button of $("zoom").children) {
    button.addEventListener("click", () => enlarge(button.dataset.zoom));
  }
  $("compare").addEventListener("click", () => compare($("compare").getAttribute("aria-pressed") !== "true"));
  $("inspect").addEventListener("click", () => inspection.toggle(shown));
  $("stop").addEventListener("click", () => act("stop"));
  $("resume").addEventListener("click", () => act("again"));
  $("again").addEventListener("click", () => {
    adopt(shown);
    location.hash = "#/";
    $("method").focus();
  });
  new ResizeObserver(fit).observe($("viewport"));
  watch(() => { if (!shown) preview(); });
}

/** Put a run on the stage, or with null what is about to be painted. */
export async function put(id) {
  const mine = ++turn;
  close();
  shown = null;
  enlarge("fit");
  if (!id) {
    preview();
    return;
  }
  try {
    const run = await ask(`/api/runs/${id}`);
    if (mine === turn) present(run);
  } catch (problem) {
    if (mine !== turn) return;
    if (problem instanceof Gone) {
      await untilBack();
      put(id);
    } else {
      location.hash = "#/";
      complain(problem);
    }
  }
}

/** Before anything is painted the chosen photo hangs there. */
function preview() {
  tools([]);
  $("bar").hidden = true;
  lay({ before: null, after: wish.content && view(wish.content), alt: "The chosen photo" });
  if (wish.content) measure(wish.content.width, wish.content.height);
  $("empty").hidden = Boolean(wish.content);
}

function view(picture) {
  return `/api/pictures/${picture.id}/view?side=1024`;
}

function present(run) {
  shown = run;
  losses = run.history;
  $("bar").hidden = false;
  $("empty").hidden = true;
  curve($("curve"), losses);
  const { content } = run;
  if (run.state === "done") return finished(run);
  if (content) measure(content.width, content.height);
  if (run.state === "waiting" || run.state === "painting") {
    lay({ before: null, after: run.state === "waiting" ? content && view(content) : null, alt: "The picture on its way" });
    tools(["stop"]);
    say(run.state === "waiting" ? waiting(run.place) : "Opening the pictures …", "");
    progress(null);
    return follow(run);
  }
  lay({ before: null, after: content && view(content), alt: "The photo of an unfinished picture" });
  tools(content && run.style ? ["resume", "again"] : []);
  $("resume").textContent = run.state === "failed" ? "Try again" : "Go on";
  say(run.state === "failed" ? `It did not work: ${run.error}.` : "This picture was interrupted. It can go on.", "");
  progress(0);
}

function finished(run) {
  measure(run.width, run.height);
  lay({
    before: run.content && `/api/pictures/${run.content.id}/view?side=${Math.min(2048, Math.max(16, run.width, run.height))}`,
    after: `/api/runs/${run.id}/result.png`,
    alt: `${called(run.content)} in the style of ${called(run.style)}`,
  });
  tools(["zoom", "again", "download", ...(run.content ? ["compare"] : []), ...(run.content && run.style ? ["inspect"] : [])]);
  compare(Boolean(run.content));
  $("download").href = `/api/runs/${run.id}/result.png?download=true`;
  say(`${ENDS[run.reason] ?? "Finished"}.`, [
    `${run.width} × ${run.height}`, run.recipe.method, `${run.steps} ${run.steps === 1 ? "step" : "steps"}`, duration(run.seconds),
  ].join(" · "));
  progress(1);
}

/** Live steps until the run is over, through any restart of the server. */
function follow(run) {
  source = new EventSource(`/api/runs/${run.id}/events`);
  let pictures = 0;
  source.addEventListener("waiting", (event) => say(waiting(JSON.parse(event.data).place), ""));
  source.addEventListener("step", (event) => {
    const step = JSON.parse(event.data);
    losses = [...losses.slice(0, step.from), ...step.history];
    curve($("curve"), losses);
    if (step.images > pictures) {
      pictures = step.images;
      swap(`/api/runs/${run.id}/live?n=${pictures}`);
    }
    if (step.phase === "painting" && step.steps) {
      const left = step.left === null ? "" : `${duration(step.left)} left`;
      say(`Step ${step.step} of ${step.steps}`, [`${step.size[0]} × ${step.size[1]}`, left].filter(Boolean).join(" · "));
      progress(step.progress);
    } else if (step.phase === "fetching") {
      say("Fetching AdaIN's decoder, once …", `${Math.round(100 * step.progress)} %`);
      progress(step.progress);
    } else {
      say({ sketching: "A first sketch …", painting: "The first step …" }[step.phase] ?? "Opening the pictures …", "");
    }
  });
  source.addEventListener("end", (event) => {
    close();
    present(JSON.parse(event.data));
    document.dispatchEvent(new Event("runs"));
  });
  source.addEventListener("error", async () => {
    close();
    try {
      await ask(`/api/runs/${run.id}`);
    } catch (problem) {
      if (!(problem instanceof Gone)) return complain(problem);
      await untilBack();
    }
    if (shown?.id === run.id) put(run.id);
  });
}

function close() {
  source?.close();
  source = null;
}

/** The next live picture takes the place of the last one when it is there, without a flicker. */
async function swap(url) {
  const next = new Image();
  next.src = url;
  try {
    await next.decode();
  } catch {
    return;  // the run has ended meanwhile
  }
  if (source) lay({ before: null, after: url, alt: "The picture on its way" });
}

function lay({ before, after, alt }) {
  set($("after"), after, alt);
  set($("before"), before, "");
  $("canvas").classList.toggle("shown", Boolean(after));
  if (!before) for (const id of ["split", "divider"]) $(id).hidden = true;
}

function set(image, url, alt) {
  image.hidden = !url;
  image.alt = alt;
  if (url) image.src = url;
  else image.removeAttribute("src");
}

function compare(on) {
  $("compare").setAttribute("aria-pressed", String(on));
  for (const id of ["before", "split", "divider"]) $(id).hidden = !on;
}

function enlarge(level) {
  zoom = level;
  for (const button of $("zoom").children) button.setAttribute("aria-pressed", String(button.dataset.zoom === level));
  $("canvas").classList.toggle("pixels", Number(level) >= 2);
  fit();
}

function measure(width, height) {
  natural = [width, height];
  fit();
}

function fit() {
  const box = $("viewport");
  const style = getComputedStyle(box);
  const room = [box.clientWidth - 2 * parseFloat(style.paddingLeft), box.clientHeight - 2 * parseFloat(style.paddingTop)];
  const factor = zoom === "fit" ? Math.min(room[0] / natural[0], room[1] / natural[1]) : Number(zoom);
  $("canvas").style.width = `${Math.max(1, Math.floor(natural[0] * factor))}px`;
  $("canvas").style.height = `${Math.max(1, Math.floor(natural[1] * factor))}px`;
}

function tools(names) {
  inspection.close();
  for (const id of ["zoom", "compare", "inspect", "stop", "resume", "again", "download"]) $(id).hidden = !names.includes(id);
  $("stop").disabled = false;
}

async function act(what) {
  $("stop").disabled = true;
  try {
    const run = await ask(`/api/runs/${shown.id}/${what}`, { method: "POST" });
    if (what === "again" || run.state === "interrupted") put(run.id);
    document.dispatchEvent(new Event("runs"));
  } catch (problem) {
    complain(problem instanceof Problem ? problem : new Problem(String(problem)));
  }
}

function waiting(place) {
  if (!place) return "About to begin …";
  return place === 1 ? "Waiting for the picture before it …" : `Waiting for ${place} pictures before it …`;
}

/** Say where things stand; to those who listen only what is new, not every step. */
function say(status, numbers) {
  $("status").textContent = status;
  $("numbers").textContent = numbers;
  const spoken = status.startsWith("Step ") ? "Painting" : status;
  if ($("spoken").textContent !== spoken) $("spoken").textContent = spoken;
}

function progress(share) {
  $("progress").hidden = share === 1;
  if (share === null) $("progress").removeAttribute("value");
  else $("progress").value = share;
}
