// The two pictures: chosen from a file, dropped, or one that comes along.

import { give } from "./api.js";
import { change, watch, wish } from "./wish.js";
import { complain, settle } from "./words.js";

const THUMB = 320;

export function wells(samples) {
  for (const [role, pictures] of [["content", samples.photos], ["style", samples.paintings]]) {
    well(role, pictures);
  }
}

function well(role, pictures) {
  const box = document.querySelector(`[data-well="${role}"]`);
  const [drop, input, image, name] = [".drop", "input", ".drop img", ".name"].map((each) => box.querySelector(each));
  const choices = choose(box.querySelector(".samples"), pictures, (picture) => {
    settle();
    change({ [role]: picture });
  });

  input.addEventListener("change", () => take(input.files[0]));
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  for (const kind of ["dragleave", "drop"]) {
    drop.addEventListener(kind, () => drop.classList.remove("over"));
  }
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  });

  async function take(file) {
    if (!file) return;
    settle();
    drop.classList.add("busy");
    name.textContent = `Reading ${file.name} …`;
    try {
      change({ [role]: await give(file) });
    } catch (problem) {
      complain(problem);
      show(wish);
    } finally {
      drop.classList.remove("busy");
      input.value = "";  // the same file may be chosen again
    }
  }

  function show(now) {
    const picture = now[role];
    image.hidden = !picture;
    if (picture) {
      const source = `/api/pictures/${picture.id}/view?side=${THUMB}`;
      if (image.getAttribute("src") !== source) image.src = source;
      name.textContent = picture.title || `${picture.name}, ${picture.width} × ${picture.height}`;
    } else {
      name.textContent = "";
    }
    choices.show(picture?.id);
  }
  watch(show);
}

/** Small pictures of which one can be chosen; arrow keys move as in any group of radio buttons. */
function choose(group, pictures, chosen) {
  group.hidden = !pictures.length;
  const buttons = pictures.map((picture) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "radio");
    button.title = `${picture.title} (${picture.license})`;
    button.setAttribute("aria-label", picture.title);
    const image = new Image();
    image.alt = "";
    image.src = `/api/pictures/${picture.id}/view?side=128`;
    button.append(image);
    button.addEventListener("click", () => chosen(picture));
    group.append(button);
    return button;
  });
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = buttons.indexOf(document.activeElement);
    const next = buttons[(place + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  });
  return {
    show(id) {
      const place = pictures.findIndex((picture) => picture.id === id);
      buttons.forEach((button, number) => {
        button.setAttribute("aria-checked", String(number === place));
        button.tabIndex = number === Math.max(place, 0) ? 0 : -1;
      });
    },
  };
}
