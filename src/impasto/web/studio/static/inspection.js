// The features of a finished picture: how they lay before, where they are, where they should be.

import { ask } from "./api.js";
import { make } from "./curve.js";

const $ = (id) => document.getElementById(id);
const [WIDTH, HEIGHT] = [160, 92];
let data = null;
let shown = "";

$("inspection-of").addEventListener("change", draw);

export const inspection = {
  close() {
    shown = "";
    $("inspection").hidden = true;
    $("inspect").setAttribute("aria-expanded", "false");
  },

  async toggle(run) {
    if (shown === run.id) return inspection.close();
    shown = run.id;
    data = null;
    $("histograms").replaceChildren();
    $("inspection").hidden = false;
    $("inspect").setAttribute("aria-expanded", "true");
    $("inspection-words").textContent = "Looking at the features …";
    $("inspection").scrollIntoView({ block: "nearest" });
    try {
      const found = await ask(`/api/runs/${run.id}/inspection`);
      if (shown !== run.id) return;
      data = found;
      $("inspection-words").textContent =
        "How often the features of each layer have which value, from 0 to 1. Painting moves the gray area toward the style.";
      draw();
      $("inspection").scrollIntoView({ block: "nearest" });
    } catch (problem) {
      $("inspection-words").textContent = problem.message;
    }
  },
};

function draw() {
  if (data) $("histograms").replaceChildren(...Object.entries(data.layers).map(layer));
}

function layer([name, each]) {
  const one = $("inspection-of").value === "one";
  const { before, after, target } = one ? each.channel.histograms : each.histograms;
  // The root shows what is rare; the highest of the three fills the height.
  const top = Math.sqrt(Math.max(...before, ...after, ...target));
  const left = remaining(each.residuals);
  const svg = make("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Histograms of ${name}; of the errors of the moments ${left} is left`,
  });
  svg.append(
    make("polygon", { class: "before-area", points: `0,${HEIGHT} ${line(before, top)} ${WIDTH},${HEIGHT}` }),
    make("polyline", { class: "target-line", points: line(target, top) }),
    make("polyline", { class: "after-line", points: line(after, top) }),
  );
  const caption = document.createElement("figcaption");
  const words = document.createElement("span");
  words.textContent = `${left} of the errors is left`;
  caption.append(one ? `${name}, channel ${each.channel.index}` : name, words);
  const figure = document.createElement("figure");
  figure.append(svg, caption);
  return figure;
}

function line(values, top) {
  return values.flatMap((value, number) => {
    const y = HEIGHT - (Math.sqrt(value) / top) * (HEIGHT - 4);
    return [number, number + 1].map((edge) => `${((edge / values.length) * WIDTH).toFixed(1)},${y.toFixed(1)}`);
  }).join(" ");
}

/** What is left of the differences of the moments 1 … 5. */
function remaining({ before, after }) {
  const [was, is] = [before, after].map((each) => each.slice(0, 5).reduce((sum, one) => sum + one, 0));
  return was > 0 ? `${Math.round((100 * is) / was)} %` : "nothing";
}
