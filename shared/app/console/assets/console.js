// What the console adds to its pages: it reads them again while somebody looks, and has keys. All works without it.
"use strict";
(() => {
  const SECONDS = 5, IDLE_MINUTES = 15;
  let etag = "", active = Date.now(), asked = Date.now(), readAt = new Date(), row = -1, goes = false;
  const main = () => document.getElementById("main");

  // Times in the viewer's zone, with UTC in the title, and ages by the clock of the app.
  const read = document.querySelector("#read time");
  const ahead = read ? new Date(read.dateTime) - Date.now() : 0;
  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      const text = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
      if (time.className === "age" && !time.title.includes(text)) time.title = `${text}, ${time.title}`;
      time.textContent = time.className === "age" ? ago(at) : text;
    }
  }
  function ago(at) {
    const minutes = Math.round((Date.now() + ahead - at) / 60000);
    const hours = Math.round(minutes / 60);
    return minutes < 1 ? "just now" : minutes < 120 ? `${minutes} min ago` : hours < 48 ? `${hours} h ago` : `${Math.round(hours / 24)} days ago`;
  }
  function shownTimes() {
    localTimes(document);
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    document.getElementById("zone").textContent = `; you see them as in ${zone}`;
  }
  function age() {
    const seconds = Math.round((Date.now() - readAt) / 1000);
    const ago = seconds < 2 ? "now" : seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
    const waits = main().hasAttribute("hx-get") ? held() : "";
    document.getElementById("read").textContent = `Read ${ago}.${waits && " Not read again "}${waits}`;
  }

  // A visible page is read again every few seconds, as long as somebody is there and no form is open.
  function held() {
    const typing = main().contains(document.activeElement) && /^(INPUT|SELECT)$/.test(document.activeElement.tagName);
    const filled = [...main().querySelectorAll("input")].some((field) =>
      field.checked !== field.defaultChecked || field.type !== "checkbox" && field.value !== field.defaultValue);
    if (main().querySelector("details.act[open]") || typing || filled) return "while a form is open or filled in.";
    const picked = getSelection();
    if (picked.type === "Range" && main().contains(picked.anchorNode)) return "while text is selected.";
    return Date.now() - active > IDLE_MINUTES * 60000 ? `until somebody is here: nobody was for ${IDLE_MINUTES} minutes.` : "";
  }
  function tick() {
    age();
    if (!main().hasAttribute("hx-get") || document.hidden || held() || Date.now() - asked < SECONDS * 1000) return;
    asked = Date.now();
    htmx.trigger(main(), "refresh");
  }
  setInterval(tick, 1000);
  setInterval(() => { localTimes(main()); }, 30000);
  for (const kind of ["pointermove", "pointerdown", "keydown", "scroll", "visibilitychange"])
    addEventListener(kind, () => { active = Date.now(); }, { passive: true, capture: true });

  // What somebody has opened, scrolled and focused stays so.
  let open = [], scrolled = [], focused = "";
  const known = (element) => element.getAttribute("href") || element.parentElement.id;
  document.addEventListener("htmx:configRequest", (event) => {
    if (etag) event.detail.headers["If-None-Match"] = etag;
  });
  document.addEventListener("htmx:beforeSwap", () => {
    open = [...main().querySelectorAll("details[open][id]")].map((element) => element.id);
    scrolled = [...main().querySelectorAll(".wide")].map((part) => part.scrollLeft);
    focused = main().contains(document.activeElement) ? known(document.activeElement) : "";
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    main().querySelectorAll(".wide").forEach((part, number) => { part.scrollLeft = scrolled[number] || 0; });
    if (focused) [...main().querySelectorAll("a, summary")].find((element) => known(element) === focused)?.focus();
    localTimes(main());
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { status } = event.detail.xhr, lost = status !== 200 && status !== 304;
    const ended = document.getElementById("ended");
    if (lost && ended.hidden) document.getElementById("ended-at").textContent = readAt.toLocaleTimeString();
    if (lost) document.getElementById("ended-why").textContent = status === 401 ? "Your session has ended"
      : status ? `The app cannot show this page now (${status})` : "The app does not answer";
    ended.hidden = !lost;
    if (lost) return;
    etag = event.detail.xhr.getResponseHeader("ETag") || "";
    readAt = new Date();
  });

  // Keys: they work where nobody types.
  const GOES = { f: "/", c: "/clusters", p: "/plans", r: "/rollouts", a: "/activity", v: "/versions", s: "/systems", m: "/costs", q: "/requests" };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const rows = [...main().querySelectorAll("tbody tr, article h3, .needs > li")]
      .map((entry) => entry.querySelector("a")).filter(Boolean);
    if (goes && GOES[event.key]) location.assign(GOES[event.key]);
    goes = event.key === "g";
    if (event.key === "/") { event.preventDefault(); document.getElementById("find").focus(); }
    if (event.key === "?") document.getElementById("keys").showModal();
    if ((event.key === "j" || event.key === "k") && rows.length) {
      row = Math.max(0, Math.min(rows.length - 1, row + (event.key === "j" ? 1 : -1)));
      rows[row].focus();
    }
  });
  document.addEventListener("change", ({ target }) => {
    for (const other of target.dataset.all ? document.getElementsByName(target.dataset.all) : [])
      other.checked = target.checked;
  });

  shownTimes();
})();
