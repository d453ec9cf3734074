// From the welcome to the thanks: one ballot after the other.

import * as board from "./board.js";
import { forget, recall, remember } from "./memory.js";
import * as server from "./server.js";

const SEEN = 180; // milliseconds for which one sees one's choice
const PAUSE = 300; // milliseconds in which new pictures take no vote: a second click was for those before
const element = (id) => document.getElementById(id);
let study = null;
let who = null;
let state = null;
let busy = true; // a choice is on its way, or pictures are

const options = {
  tell: (away) => notice(away ? "The server does not answer. Your choice is kept here and sent again …" : ""),
};

function notice(sentence) {
  element("notice").textContent = sentence;
}

function show(section) {
  for (const each of document.querySelectorAll("main > section")) each.hidden = each.id !== section;
  element("progress").hidden = section === "welcome";
  element("undo").hidden = section === "welcome";
}

async function draw(next) {
  state = next;
  board.close();
  element("bar").max = state.total;
  element("bar").value = state.done;
  element("undo").disabled = !state.last;
  const number = Math.min(state.done + 1, state.total);
  element("count").textContent = `${number} of ${state.total}`;
  if (!state.ballot) {
    show("thanks");
    element("thanks-title").focus();
    busy = false;
    return;
  }
  show("ballot");
  element("board").classList.add("loading");
  element("board").ariaBusy = true; // takes no votes yet
  const tell = (missing) => notice(missing ? "A picture does not come; asking for it again …" : "");
  await board.draw(state.ballot, choose, tell);
  element("board").classList.remove("loading");
  element("question").focus({ preventScroll: true });
  window.scrollTo(0, 0);
  board.ahead(state.ahead);
  await new Promise((wake) => setTimeout(wake, PAUSE));
  element("board").ariaBusy = false;
  busy = false;
}

// Do something with the server; where it knows better, show what it knows.
async function act(work) {
  if (busy) return;
  busy = true;
  try {
    await draw(await work());
  } catch (problem) {
    if (!(problem instanceof server.Refused)) throw problem;
    await recover(problem);
  }
}

async function recover(problem) {
  board.mark(null);
  if (problem.status === 404) {
    forget(study.study);
    await start();
  } else if (problem.status === 409) {
    await draw(await server.progress(who, options)); // voted in another window, or just now
  } else {
    busy = false;
  }
  notice(problem.status === 409 ? "" : problem.message);
}

function choose(place) {
  const ballot = state?.ballot;
  if (!ballot || place >= ballot.pictures.length) return;
  act(async () => {
    board.close();
    board.mark(place);
    const seen = new Promise((wake) => setTimeout(wake, SEEN));
    const choice = { position: ballot.position, place };
    const [next] = await Promise.all([server.vote(who, server.word(), choice, options), seen]);
    return next;
  });
}

function undo() {
  if (state?.last) act(() => server.withdraw(who, state.last, options));
}

function begin() {
  who = server.word();
  remember(study.study, who); // before it is sent: an answer that is lost is asked for again
  act(() => server.join(who, options));
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const digit = "123456789".indexOf(event.key);
  const held = event.repeat; // a key that is held down votes once
  if (event.key.length === 1 && digit >= 0) held || choose(digit);
  else if (event.key === "Backspace" || event.key === "u") held || undo();
  else if (event.key === "z" && state?.ballot) board.isOpen() ? board.close() : board.look(2);
  else if (board.isOpen() && event.key === "ArrowRight") board.turn(1);
  else if (board.isOpen() && event.key === "ArrowLeft") board.turn(-1);
  else return;
  event.preventDefault();
}

function welcome() {
  document.title = study.title;
  element("title").textContent = study.title;
  element("welcome-title").textContent = study.question;
  element("question").textContent = study.question;
  element("ballots").textContent = study.ballots;
  element("most").textContent = study.shown;
  document.querySelector(".shown").textContent = ["two", "three", "four", "five", "six"][study.shown - 2] ?? study.shown;
}

async function start() {
  busy = true;
  study = await server.study(options);
  welcome();
  who = recall(study.study);
  busy = false;
  if (who) await act(() => server.join(who, options)); // goes on where one stopped
  else show("welcome");
}

element("begin").addEventListener("click", begin);
element("undo").addEventListener("click", undo);
element("choose").addEventListener("click", () => choose(board.place()));
element("another").addEventListener("click", () => {
  forget(study.study);
  state = null;
  show("welcome");
  element("welcome-title").focus();
});
document.addEventListener("keydown", press);
start().catch((problem) => notice(problem.message));
