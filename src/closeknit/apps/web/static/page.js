// What a page can do better with a script; everything works without it.
"use strict";
document.documentElement.classList.add("js");

// A file that is dropped on the form is the file of the form.
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    const form = event.target.closest?.("[data-drop]");
    if (!form) return;
    event.preventDefault();
    form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) form.querySelector("input[type=file]").files = event.dataTransfer.files;
  });
}

// How much of an upload has been sent.
document.addEventListener("htmx:xhr:progress", (event) => {
  const bar = document.getElementById("sent");
  if (bar && event.detail.total) { bar.hidden = false; bar.value = event.detail.loaded / event.detail.total; }
});

// Whoever is going somewhere else is not called back by a bar that has just ended.
let leaving = false;
addEventListener("beforeunload", () => { leaving = true; });
addEventListener("pageshow", () => { leaving = false; });
for (const kind of ["htmx:beforeRequest", "htmx:beforeOnLoad"]) {
  document.addEventListener(kind, (event) => { if (leaving && event.target.id === "progress") event.preventDefault(); });
}

// Words of progress are said once, although the bar is drawn again and again.
document.addEventListener("htmx:afterSettle", () => {
  const words = document.querySelector("#progress [data-words]");
  const said = document.getElementById("said");
  if (words && said && said.textContent !== words.textContent) said.textContent = words.textContent;
});

// A field that has a meaning only with a certain choice is shown only then.
function fit(form) {
  for (const field of form.querySelectorAll("[data-only]")) {
    const other = form.elements[field.dataset.only];
    field.hidden = Boolean(other) && !field.dataset.values.split(" ").includes(other.value);
  }
}
for (const form of document.forms) fit(form);
document.addEventListener("change", (event) => { if (event.target.form) fit(event.target.form); });

// What the page would ask for anyway.
const soon = document.querySelector("form[data-soon]");
if (soon) soon.requestSubmit();
