// Enhancements: every page works without this script.
"use strict";
document.documentElement.classList.add("js");

// A file dropped on the form becomes the file of the form.
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    const form = event.target.closest?.("[data-drop]");
    if (!form) return;
    event.preventDefault();
    form.classList.toggle("over", kind === "dragenter" || kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) form.querySelector("input[type=file]").files = event.dataTransfer.files;
  });
}

// Progress of an upload.
document.addEventListener("htmx:xhr:progress", (event) => {
  const bar = document.getElementById("sent");
  if (bar && event.detail.total) { bar.hidden = false; bar.value = event.detail.loaded / event.detail.total; }
});

// A progress bar that ends must not reload the page while the user navigates elsewhere.
let leaving = false;
addEventListener("beforeunload", () => { leaving = true; });
addEventListener("pageshow", () => { leaving = false; });
for (const kind of ["htmx:beforeRequest", "htmx:beforeOnLoad"]) {
  document.addEventListener(kind, (event) => { if (leaving && ["progress", "stream"].includes(event.target.id)) event.preventDefault(); });
}

// Screen readers announce each step of the progress once, although the bar is redrawn all the time.
document.addEventListener("htmx:afterSettle", () => {
  const words = document.querySelector("#progress [data-words], #stream [data-words]");
  const announced = document.getElementById("announced");
  if (words && announced && announced.textContent !== words.textContent) announced.textContent = words.textContent;
});

// A field that belongs to a certain choice is shown only with that choice.
function fit(form) {
  for (const field of form.querySelectorAll("[data-only]")) {
    const other = form.elements[field.dataset.only];
    field.hidden = Boolean(other) && !field.dataset.values.split(" ").includes(other.value);
  }
}
for (const form of document.forms) fit(form);
document.addEventListener("change", (event) => { if (event.target.form) fit(event.target.form); });

// A filter hides rows whose names do not contain its text; hidden rows are not ticked.
document.addEventListener("input", (event) => {
  if (event.target.dataset.filter) filter(event.target);
});
function filter(field) {
  const sought = field.value.trim().toLowerCase();
  let count = 0;
  for (const row of document.querySelectorAll(field.dataset.filter)) {
    row.hidden = !row.querySelector("th").dataset.name.includes(sought);
    if (row.hidden) row.querySelector("input[type=checkbox]").checked = false;
    count += !row.hidden;
  }
  const shown = document.getElementById("shown");
  if (shown) shown.textContent = shown.textContent.replace(/^\d+/, count);
}
document.addEventListener("htmx:afterSettle", () => { for (const field of document.querySelectorAll("[data-filter]")) filter(field); });
document.addEventListener("change", (event) => {
  if (!event.target.dataset.all) return;
  for (const box of document.querySelectorAll(event.target.dataset.all)) box.checked = event.target.checked;
});

// Start what the page needs anyway.
const soon = document.querySelector("form[data-soon]");
if (soon) soon.requestSubmit();
