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

// A filter hides the rows whose name has another text in it; hidden rows are not ticked.
document.addEventListener("input", (event) => {
  const shown = event.target.dataset.filter;
  if (shown) filter(event.target);
});
function filter(field) {
  const sought = field.value.trim().toLowerCase();
  let count = 0;
  for (const row of document.querySelectorAll(field.dataset.filter)) {
    row.hidden = !row.querySelector("th").dataset.name.includes(sought);
    if (row.hidden) row.querySelector("input[type=checkbox]").checked = false;
    count += !row.hidden;
  }
  const told = document.getElementById("shown");
  if (told) told.textContent = told.textContent.replace(/^\d+/, count);
}
document.addEventListener("htmx:afterSettle", () => { for (const field of document.querySelectorAll("[data-filter]")) filter(field); });
document.addEventListener("change", (event) => {
  if (!event.target.dataset.all) return;
  for (const box of document.querySelectorAll(event.target.dataset.all)) box.checked = event.target.checked;
});

// What the page would ask for anyway.
const soon = document.querySelector("form[data-soon]");
if (soon) soon.requestSubmit();
