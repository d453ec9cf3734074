// The course of the style loss, on a logarithmic scale.

import { small } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, MARGIN] = [220, 56, 4];

/** Draw losses [style, content, layers] into a figure, a line for each number of layers: what differs in them cannot be compared. */
export function curve(figure, losses) {
  const values = losses.map(([style]) => Math.max(style, 1e-9));
  if (values.length < 2) return figure.replaceChildren();
  const logs = values.map(Math.log);
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const parts = [];
  let begun = 0; // where the last part begins
  for (const [number, each] of logs.entries()) {
    if (losses[number][2] !== losses[number - 1]?.[2]) {
      begun = number;
      parts.push([]);
    }
    const x = (number / (logs.length - 1)) * WIDTH;
    const y = MARGIN + ((high - each) / (high - low || 1)) * (HEIGHT - 2 * MARGIN);
    parts.at(-1).push([x.toFixed(1), y.toFixed(1)]);
  }
  const [first, last] = [small(values[begun]), small(values.at(-1))];
  const words = `Style loss: from ${first} to ${last} in ${values.length - 1 - begun} steps`;
  const before = begun ? `, after ${begun} of shallow layers alone` : "";

  const svg = make("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": words + before });
  for (const part of parts) {
    const line = part.map((point) => point.join(",")).join(" ");
    const [left, right] = [part[0][0], part.at(-1)[0]];
    svg.append(
      make("polygon", { class: "fill", points: `${left},${HEIGHT} ${line} ${right},${HEIGHT}` }),
      make("polyline", { class: "line", points: line }),
    );
  }
  const caption = document.createElement("figcaption");
  const [left, right] = [document.createElement("span"), document.createElement("span")];
  left.textContent = "style loss";
  right.textContent = `${first} → ${last}`;
  caption.append(left, right);
  figure.replaceChildren(svg, caption);
}

export function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
