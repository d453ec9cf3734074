// What is to be painted: two pictures, a preset and the settings that differ from it.

export const wish = { content: null, style: null, preset: "", settings: {} };
export const known = { settings: [], presets: {}, methods: {}, defaults: {} };

const listeners = new Set();

/** Call a function now and whenever the wish changes. */
export function watch(listener) {
  listeners.add(listener);
  listener(wish);
}

/** Change the wish: pictures, preset, or settings, where undefined is as the preset has it. */
export function change({ settings, ...rest }) {
  Object.assign(wish, rest);
  for (const [name, value] of Object.entries(settings ?? {})) {
    if (value === undefined || same(value, base(name))) delete wish.settings[name];
    else wish.settings[name] = value;
  }
  for (const listener of listeners) listener(wish);
}

/** The value of a setting as things stand. */
export function value(name) {
  return wish.settings[name] ?? base(name);
}

/** The value of a setting where nothing was changed. */
export function base(name) {
  return known.presets[wish.preset]?.[name] ?? known.defaults[name];
}

/** Take over what made an earlier picture. */
export function adopt(run) {
  const settings = {};
  for (const { name } of known.settings) {
    if (name in run.recipe && !same(run.recipe[name], known.defaults[name])) settings[name] = run.recipe[name];
  }
  wish.settings = {};
  change({ preset: "", settings, content: run.content ?? wish.content, style: run.style ?? wish.style });
}

/** The body of a request. */
export function request() {
  return { content: wish.content.id, style: wish.style.id, preset: wish.preset, settings: wish.settings };
}

export function same(a, b) {
  return text(a) === text(b);
}

export function text(value) {
  return Array.isArray(value) ? value.join(", ") : String(value);
}
