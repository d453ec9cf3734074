// The moment equalizer: faders for the weights of moments and layers, and a sketch that follows.

import { ask, Gone } from "./api.js";
import { change, known, request, text, value, watch, wish } from "./wish.js";
import { complain } from "./words.js";

const $ = (id) => document.getElementById(id);
const MOMENTS = ["mean", "variance", "skewness", "kurtosis"];
const MOST = 8;  // faders side by side
const PAUSE = 250;  // milliseconds without a change before a sketch is asked for

export function equalizer() {
  $("strokes").addEventListener("input", () => {
    const octaves = Number($("strokes").value);
    change({ settings: { style_size: octaves === 0 ? undefined : Math.max(32, Math.round(side() * 2 ** octaves)) } });
  });
  $("level").addEventListener("click", () => {
    change({ settings: { moment_weights: undefined, layer_weights: undefined, style_size: undefined } });
  });
  $("equalizer").addEventListener("toggle", sketch);
  watch(show);
  watch(sketch);
}

function show() {
  const order = Number(value("order"));
  const moments = array(value("moment_weights"), Array(order).fill(1));
  bank("moments", order > MOST ? [] : moments, {
    label: (number) => [`a${String.fromCharCode(0x2081 + number)}`, MOMENTS[number] ?? `moment ${number + 1}`],
    moved: (weights) => change({ settings: { moment_weights: weights.every((each) => each === 1) ? undefined : weights } }),
  });
  const names = array(value("layers"), known.methods[value("method")].layers);
  const usual = names.map((name) => known.layer_weights[name]);
  const weights = array(value("layer_weights"), usual);
  bank("layers", names.length > MOST ? [] : weights.map((each, number) => each / usual[number]), {
    label: (number) => [names[number].replace(/[a-z]+/, "").replace("_", "·"), `layer ${names[number]}`],
    moved: (factors) => change({
      settings: { layer_weights: factors.every((each) => each === 1) ? undefined : factors.map((each, number) => each * usual[number]) },
    }),
  });
  const { methods } = known.settings.find(({ name }) => name === "moment_weights");
  $("moments").disabled = !methods.includes(value("method"));
  $("layers").disabled = known.methods[value("method")].feed_forward;
  const strokes = Number(value("style_size")) || side();
  $("strokes").value = Math.log2(strokes / side());
  $("strokes-out").textContent = strokes === side() ? "as usual" : `style at ${strokes} pixels`;
}

/** Five faders, or as many as there are weights; made anew only when their number changes. */
function bank(id, weights, { label, moved }) {
  const box = $(id).querySelector(".faders");
  $(id).hidden = !weights.length;
  if (box.childElementCount !== weights.length) box.replaceChildren(...weights.map((_, number) => fader(`${id}-${number}`)));
  [...box.children].forEach((each, number) => {
    const [short, long] = label(number);
    const [input, out, name] = each.children;
    name.textContent = short;
    name.title = long;
    input.setAttribute("aria-label", long);
    if (Number(input.value) !== weights[number]) input.value = weights[number];
    out.textContent = String(Number(weights[number].toFixed(2)));
    // The others stay as they are: a fader cannot show every weight.
    input.oninput = () => moved(weights.map((weight, place) => (place === number ? Number(input.value) : weight)));
  });
}

function fader(id) {
  const box = document.createElement("div");
  box.className = "fader";
  const input = document.createElement("input");
  Object.assign(input, { type: "range", min: 0, max: 3, step: 0.1, id });
  const out = document.createElement("output");
  out.htmlFor = id;
  const name = document.createElement("span");
  box.append(input, out, name);
  return box;
}

/** The long side of the result. */
function side() {
  const size = value("size");
  return size === "original" ? Math.max(wish.content?.width ?? 0, wish.content?.height ?? 0) || 512 : Number(size) || 512;
}

function array(given, usual) {
  const parts = Array.isArray(given) ? given : text(given).split(",").map((each) => each.trim());
  return parts.length === usual.length && parts[0] !== "" ? parts.map((each) => (typeof usual[0] === "number" ? Number(each) : each)) : usual;
}

let timer = 0;
let asking = false;
let last = "";  // what the sketch shows, or is about to

/** Ask for a sketch when nothing has changed for a moment; one at a time. */
function sketch() {
  clearTimeout(timer);
  if ($("equalizer").open && wish.content && wish.style) timer = setTimeout(draw, PAUSE);
}

async function draw() {
  const body = request();
  const wanted = JSON.stringify(body);
  if (asking || wanted === last) return;
  asking = true;
  last = wanted;
  const box = $("sketch").parentElement;
  box.classList.add("busy");
  $("sketch-note").textContent = "Sketching …";
  const began = performance.now();
  try {
    const answer = await ask("/api/sketches", { method: "POST", body, raw: true });
    const url = URL.createObjectURL(await answer.blob());
    URL.revokeObjectURL($("sketch").src);
    $("sketch").src = url;
    $("sketch").alt = "A sketch of the picture to come";
    $("sketch").hidden = false;
    const seconds = (performance.now() - began) / 1000;
    $("sketch-note").textContent = `A sketch, made in ${seconds.toFixed(1)} s. The picture will be finer.`;
  } catch (problem) {
    last = "";
    $("sketch-note").textContent = problem.message;
    if (problem instanceof Gone) complain(problem);
  } finally {
    asking = false;
    box.classList.remove("busy");
  }
  if (JSON.stringify(request()) !== wanted) sketch();
}
