import { html, nothing, type TemplateResult } from "lit/html.js";
import { linkTo } from "../model/route.ts";
import { visibleText } from "../model/visible-text.ts";
import { comparePage } from "./compare-page.ts";
import { episodePage } from "./episode-page.ts";
import { groupPage } from "./group-page.ts";
import { keyHelp } from "./keyboard.ts";
import { formatNumber, stateBadge, whenReady } from "./parts.ts";
import { runPage } from "./run-page.ts";
import { runRoute, type ViewerApp } from "./viewer-app.ts";

/** Renders the complete page. */
export function shell(app: ViewerApp): TemplateResult {
  return html`<header class="top">
      ${breadcrumbs(app)}
      <span class="notice" role="status" aria-live="polite">${app.notice}</span>
      <button type="button" title="light or dark" @click=${switchTheme}>◐ theme</button>
      <button
        type="button"
        @click=${() => {
          app.isHelpOpen = !app.isHelpOpen;
          app.update();
        }}
      >
        keys <kbd>?</kbd>
      </button>
    </header>
    <main>${page(app)}</main>
    ${app.isHelpOpen ? help(app) : nothing}`;
}

function page(app: ViewerApp): TemplateResult {
  const { route } = app;
  switch (route.page) {
    case "runs":
      return runsPage(app);
    case "run":
      return runPage(app, route);
    case "episode":
      return episodePage(app, route);
    case "group":
      return groupPage(app, route);
    case "compare":
      return comparePage(app, route);
  }
}

function breadcrumbs(app: ViewerApp): TemplateResult {
  const { route } = app;
  const name = { runs: "", run: "", episode: "episode", group: "group", compare: "comparison" }[
    route.page
  ];
  return html`<nav class="breadcrumbs" aria-label="where you are">
    <a class="brand" href="#/">Turnwright</a>
    ${
      route.page === "runs"
        ? nothing
        : html`<span aria-hidden="true">›</span>
            <a href=${linkTo(runRoute(route.run))}>${visibleText(route.run)}</a>`
    }
    ${name === "" ? nothing : html`<span aria-hidden="true">›</span> <span>${name}</span>`}
  </nav>`;
}

/** Renders the list of all runs. */
function runsPage(app: ViewerApp): TemplateResult {
  return whenReady(app.runs, (runs) => {
    const [first] = runs;
    return html`<div class="runs-page">
      <h1>Runs</h1>
      <ul class="runs">
        ${runs.map(
          ({ key, dir, state, episodeCount, planned, environment, split }) =>
            html`<li>
              <a href=${linkTo(runRoute(key))}><b>${visibleText(key)}</b></a> ${stateBadge(state)}
              <span
                >${formatNumber(episodeCount)}${
                  planned === undefined ? "" : ` of ${formatNumber(planned)}`
                }
                episodes</span
              >
              <span class="faint"
                >${[environment, split].filter((part) => part !== undefined).join(" · ")}
                ${visibleText(dir)}</span
              >
              ${
                first === undefined || key === first.key
                  ? nothing
                  : html`<a
                      class="button"
                      href=${linkTo({ page: "compare", run: first.key, other: key, order: "" })}
                      >compare with ${visibleText(first.key)}</a
                    >`
              }
            </li>`,
        )}
      </ul>
    </div>`;
  });
}

function switchTheme(): void {
  const { style } = document.documentElement;
  const isDark =
    style.colorScheme === "dark" ||
    (style.colorScheme === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  style.colorScheme = isDark ? "light" : "dark";
}

function help(app: ViewerApp): TemplateResult {
  return html`<aside class="help" role="dialog" aria-label="keys">
    <button
      type="button"
      class="close"
      @click=${() => {
        app.isHelpOpen = false;
        app.update();
      }}
    >
      close <kbd>Esc</kbd>
    </button>
    ${keyHelp.map(
      ({ title, keys }) =>
        html`<h2>${title}</h2>
          <dl>
            ${keys.map(
              ([key, meaning]) =>
                html`<div>
                  <dt><kbd>${key}</kbd></dt>
                  <dd>${meaning}</dd>
                </div>`,
            )}
          </dl>`,
    )}
  </aside>`;
}
