// The pictures of a ballot, and the glass through which one looks at them closely.

const element = (id) => document.getElementById(id);
const glass = element("glass");
let looked = []; // what the glass can show: {source, caption, place}
let at = 0;

function option(source, place, choose) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "option";
  button.setAttribute("aria-label", `Choose picture ${place + 1}`);
  const image = new Image();
  image.alt = "";
  image.src = source;
  const number = document.createElement("span");
  number.className = "number";
  number.textContent = place + 1;
  button.append(image, number);
  button.addEventListener("click", () => choose(place));
  const closer = document.createElement("button");
  closer.type = "button";
  closer.className = "closer";
  closer.setAttribute("aria-label", `Enlarge picture ${place + 1}`);
  closer.textContent = "⤢";
  closer.addEventListener("click", () => look(place + 2));
  item.append(button, closer);
  return item;
}

// Nobody should choose among pictures of which one is missing: ask for it until it comes.
async function load(image, tell) {
  for (;;) {
    try {
      return await image.decode();
    } catch {
      tell(true);
      await new Promise((wake) => setTimeout(wake, 1000));
      const source = image.src;
      image.src = "";
      image.src = source;
    }
  }
}

// Draw a ballot; resolves when every picture is there to be compared.
export async function draw(ballot, choose, tell) {
  const sources = document.querySelectorAll("#sources img");
  sources[0].src = ballot.content;
  sources[1].src = ballot.style;
  const list = element("pictures");
  list.className = `of-${ballot.pictures.length}`;
  list.replaceChildren(...ballot.pictures.map((source, place) => option(source, place, choose)));
  looked = [
    { source: ballot.content, caption: "content" },
    { source: ballot.style, caption: "style" },
    ...ballot.pictures.map((source, place) => ({ source, caption: `picture ${place + 1}`, place })),
  ];
  const images = [...sources, ...list.querySelectorAll("img")];
  await Promise.all(images.map((image) => load(image, tell)));
  tell(false);
  const { naturalWidth, naturalHeight } = list.querySelector("img");
  list.style.setProperty("--ratio", naturalWidth / naturalHeight || 1.5);
}

export function mark(place) {
  for (const [index, item] of [...element("pictures").children].entries()) {
    item.classList.toggle("chosen", index === place);
    item.classList.toggle("other", place !== null && index !== place);
  }
}

export const isOpen = () => glass.open;
export const close = () => glass.open && glass.close();
export const place = () => looked[at]?.place;

export function look(index) {
  at = (index + looked.length) % looked.length;
  const { source, caption } = looked[at];
  const image = glass.querySelector("img");
  image.src = source;
  image.alt = caption;
  element("caption").textContent = caption;
  element("choose").disabled = place() === undefined;
  if (!glass.open) glass.showModal();
}

export const turn = (step) => look(at + step);

export function ahead(sources) {
  for (const source of sources) new Image().src = source;
}

document.querySelectorAll(".look").forEach((button, index) => {
  button.addEventListener("click", () => look(index));
});
element("before").addEventListener("click", () => turn(-1));
element("after").addEventListener("click", () => turn(1));
element("close").addEventListener("click", close);
glass.addEventListener("click", (event) => event.target === glass && close());
