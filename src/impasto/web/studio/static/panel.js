// The settings: a few at hand, and all of them in a panel made from the recipe's own table.

import { give } from "./api.js";
import { base, change, known, text, value, watch, wish } from "./wish.js";
import { complain } from "./words.js";

const SIZES = { 256: "Small, 256", 512: "Medium, 512", 1024: "Large, 1024", 2048: "Print, 2048", original: "As the photo" };
const PRESETS = { fast: "Fast", "": "Balanced", best: "Best", paper: "As in the paper" };
const DECADE = 25;  // of the strength: as many points make α ten times smaller

const OWN = "+";
const names = {};  // of pictures that were given as a start

const $ = (id) => document.getElementById(id);

export function panel() {
  quick();
  all();
}

/** α from the strength: 100 is style only, 0 is the photo. */
export function alphaOf(strength) {
  return strength >= 100 ? 0 : Number((10 ** (-strength / DECADE)).toPrecision(2));
}

export function strengthOf(alpha) {
  return alpha <= 1e-4 ? 100 : Math.max(0, -DECADE * Math.log10(alpha));
}

/** Whether the method has no steps: it has a strength of its own in place of α. */
function inOneGo() {
  return Boolean(known.methods[value("method")]?.feed_forward) && value("decode") !== "optimize";
}

function quick() {
  for (const [title, quick] of [["Painted step by step", false], ["In one go", true]]) {
    const group = document.createElement("optgroup");
    group.label = title;
    const names = Object.keys(known.methods).filter((name) => known.methods[name].feed_forward === quick);
    group.append(...names.map((name) => new Option(name, name)));
    if (names.length) $("method").append(group);
  }
  const presets = Object.keys(known.presets).filter((name) => name !== "balanced");
  const order = ["fast", "", ...presets.filter((name) => name !== "fast")];
  options($("preset"), order.map((name) => [name, PRESETS[name] ?? name]));

  $("method").addEventListener("change", () => {
    // Which layers there are and what they weigh follows the method.
    change({ settings: { method: $("method").value, layers: undefined, layer_weights: undefined } });
  });
  $("strength").addEventListener("input", () => {
    const strength = Number($("strength").value);
    change({ settings: inOneGo() ? { strength: strength / 100 } : { alpha: alphaOf(strength) } });
  });
  $("size").addEventListener("change", () => {
    const size = $("size").value;
    change({ settings: { size: size === "original" ? size : Number(size) } });
  });
  $("preset").addEventListener("change", () => change({ preset: $("preset").value }));

  watch(() => {
    $("method").value = value("method");
    $("method-help").textContent = known.methods[value("method")]?.description ?? "";
    const alpha = Number(value("alpha"));
    if (inOneGo()) $("strength").value = 100 * Number(value("strength"));
    else if (alphaOf(Number($("strength").value)) !== alpha) $("strength").value = strengthOf(alpha);
    $("strength-out").textContent = inOneGo() ? `${Math.round(100 * Number(value("strength")))} %` : `α = ${alpha}`;
    const size = String(value("size"));
    options($("size"), Object.entries({ ...(size in SIZES ? {} : { [size]: `${size} pixels` }), ...SIZES }));
    $("size").value = size;
    $("preset").value = wish.preset;
  });
}

function options(select, pairs) {
  const wanted = JSON.stringify(pairs);
  if (select.dataset.pairs === wanted) return;
  select.dataset.pairs = wanted;
  select.replaceChildren(...pairs.map(([value, label]) => new Option(label, value)));
}

/** A field for every setting there is. */
function all() {
  const groups = new Map();
  for (const setting of known.settings) {
    if (!groups.has(setting.group)) groups.set(setting.group, group(setting.group));
    groups.get(setting.group).append(field(setting));
  }
  watch(() => {
    const number = Object.keys(wish.settings).length;
    $("changed").hidden = !number;
    $("changed").textContent = `${number} changed`;
  });
}

function group(name) {
  const section = document.createElement("section");
  const title = document.createElement("h3");
  title.textContent = name;
  const box = document.createElement("div");
  box.className = "group";
  section.append(title, box);
  $("settings").append(section);
  return box;
}

function field(setting) {
  const box = document.createElement("div");
  box.className = "field";
  const label = document.createElement("label");
  label.htmlFor = `all-${setting.name}`;
  label.textContent = setting.name.replaceAll("_", " ");
  const input = control(setting);
  input.id = label.htmlFor;
  const help = document.createElement("p");
  help.className = "help";
  help.id = `${input.id}-help`;
  help.textContent = setting.help;
  input.setAttribute("aria-describedby", help.id);
  box.append(label, input, help);

  if (setting.name === "start") return own(box, setting, input);
  input.addEventListener("change", () => {
    const given = input.value.trim();
    change({ settings: { [setting.name]: given === "" ? undefined : typed(setting, given) } });
  });
  watch(() => {
    const now = value(setting.name);
    box.classList.toggle("changed", setting.name in wish.settings);
    if (document.activeElement !== input || input.value.trim() === "") input.value = text(now);
    if (input.placeholder !== undefined) input.placeholder = text(base(setting.name)) || "as usual";
  });
  return box;
}

function control(setting) {
  if (setting.choices.length && setting.kind !== "list") {
    const select = document.createElement("select");
    options(select, setting.choices.map((each) => [each, each]));
    return select;
  }
  const input = document.createElement("input");
  const plain = setting.numeric && setting.kind !== "list" && !setting.free;
  input.type = plain ? "number" : "text";
  if (plain) {
    input.step = setting.kind === "int" ? "1" : "any";
    if (setting.low !== null) input.min = setting.low;
    if (setting.high !== null) input.max = setting.high;
  }
  input.autocomplete = "off";
  input.spellcheck = false;
  return input;
}

/** The start may also be a picture: the last choice asks for a file. */
function own(box, setting, select) {
  const chooser = document.createElement("input");
  Object.assign(chooser, { type: "file", accept: "image/*", hidden: true });
  box.append(chooser);
  select.addEventListener("change", () => {
    if (select.value === OWN) chooser.click();
    else change({ settings: { start: select.value } });
  });
  chooser.addEventListener("cancel", () => change({}));
  chooser.addEventListener("change", async () => {
    try {
      const picture = await give(chooser.files[0]);
      names[picture.id] = picture.name;
      change({ settings: { start: picture.id } });
    } catch (problem) {
      complain(problem);
      change({});
    }
  });
  watch(() => {
    const now = value("start");
    const more = setting.choices.includes(now) ? [] : [[now, names[now] ?? "a picture"]];
    options(select, [...setting.choices.map((each) => [each, each]), ...more, [OWN, "a picture of yours …"]]);
    select.value = now;
    box.classList.toggle("changed", "start" in wish.settings);
  });
  return box;
}

/** Numbers as numbers; the server understands the rest as the command line does. */
function typed(setting, given) {
  if (setting.kind === "list") {
    const parts = given.split(",").map((each) => each.trim()).filter(Boolean);
    return setting.numeric ? parts.map((each) => (Number.isFinite(Number(each)) ? Number(each) : each)) : parts;
  }
  const number = Number(given);
  return setting.numeric && Number.isFinite(number) ? number : given;
}
