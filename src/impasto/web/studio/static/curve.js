// The course of the style loss, on a logarithmic scale.

import { small } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, MARGIN] = [220, 56, 4];

/** Draw losses, pairs of style and content, into a figure. */
export function curve(figure, losses) {
  const values = losses.map(([style]) => Math.max(style, 1e-9));
  if (values.length < 2) return figure.replaceChildren();
  const logs = values.map(Math.log);
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const points = logs.map((each, number) => [
    (number / (logs.length - 1)) * WIDTH,
    MARGIN + ((high - each) / (high - low || 1)) * (HEIGHT - 2 * MARGIN),
  ]);
  const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
  const [first, last] = [small(values[0]), small(values.at(-1))];
  const words = `Style loss: from ${first} to ${last} in ${values.length - 1} steps`;

  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words });
  svg.append(
    make("polygon", { class: "fill", points: `0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}` }),
    make("polyline", { class: "line", points: line }),
  );
  const caption = document.createElement("figcaption");
  const [left, right] = [document.createElement("span"), document.createElement("span")];
  left.textContent = `style loss ${first}`;
  right.textContent = `→ ${last}`;
  caption.append(left, right);
  figure.replaceChildren(svg, caption);
}

export function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
