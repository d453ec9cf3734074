// The reference of the HTTP API, made from its own description.

const host = location.origin;
document.getElementById("example").textContent = `# give a photo: {"id": "4f0c…", …}
curl --data-binary @photo.jpg '${host}/api/pictures?name=photo.jpg'
# paint it: {"id": "91ab…", "state": "waiting", …}
curl --json '{"content": "4f0c…", "style": "cypresses"}' ${host}/api/runs
# see the steps as they are made
curl -N ${host}/api/runs/91ab…/events
# take the picture, its record inside
curl -o out.png ${host}/api/runs/91ab…/result.png`;

const description = await (await fetch("/openapi.json")).json();
const groups = new Map();
for (const [path, methods] of Object.entries(description.paths)) {
  for (const [method, operation] of Object.entries(methods)) {
    const tag = operation.tags?.[0] ?? "other";
    if (!groups.has(tag)) groups.set(tag, []);
    groups.get(tag).push(entry(method, path, operation));
  }
}
for (const [tag, entries] of groups) {
  const section = element("section", "");
  section.append(element("h2", "", tag), ...entries);
  document.getElementById("operations").append(section);
}

function entry(method, path, operation) {
  const box = element("article", "operation");
  const title = element("h3", "");
  title.append(element("span", `verb ${method}`, method.toUpperCase()), " ", element("code", "", path));
  box.append(title, element("p", "", operation.description ?? operation.summary));
  const rows = [...(operation.parameters ?? []).map(parameter), ...body(operation)];
  if (rows.length) {
    const list = element("dl", "");
    for (const [name, words] of rows) list.append(element("dt", "", name), element("dd", "", words));
    box.append(list);
  }
  box.append(element("p", "answers", `Answers: ${Object.entries(operation.responses).map(answer).join("; ")}`));
  return box;
}

function parameter({ name, in: place, required, schema, description: words }) {
  const limits = [schema.minimum !== undefined && `from ${schema.minimum}`, schema.maximum !== undefined && `to ${schema.maximum}`];
  return [name, [place, required ? "required" : "optional", ...limits.filter(Boolean), words].filter(Boolean).join(", ")];
}

function body(operation) {
  return Object.entries(operation.requestBody?.content ?? {}).flatMap(([kind, { schema }]) => {
    if (!schema.$ref) return [["body", kind]];
    const { properties, required = [] } = description.components.schemas[schema.$ref.split("/").at(-1)];
    return Object.entries(properties).map(([name, { type, description: words }]) => [
      name, [`${kind.split("/")[1]} field`, type, required.includes(name) ? "required" : "optional", words].filter(Boolean).join(", "),
    ]);
  });
}

function answer([status, { content = {}, description: words }]) {
  const [kind] = Object.keys(content);
  return `${status} ${words === "Successful Response" ? "done" : words}${kind && kind !== "application/json" ? ` (${kind})` : ""}`;
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}
