import { html, nothing, type TemplateResult } from "lit/html.js";
import { linkTo } from "../model/route.ts";
import { visibleText } from "../model/visible-text.ts";
import { aboutPage } from "./lists/about-page.ts";
import { comparePage } from "./lists/compare-page.ts";
import { episodePage } from "./episode-page.ts";
import { groupPage } from "./group-page.ts";
import { keyHelp } from "./keyboard.ts";
import { runPage } from "./lists/run-page.ts";
import { runsPage } from "./lists/runs-page.ts";
import type { ViewerApp } from "./viewer-app.ts";

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
      return runsPage(app, route);
    case "run":
      return runPage(app, route);
    case "about":
      return aboutPage(app, route);
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
  const name = {
    runs: "",
    run: "",
    about: "settings and metrics",
    episode: "episode",
    group: "group",
    compare: "comparison",
  }[route.page];
  return html`<nav class="breadcrumbs" aria-label="where you are">
    <a class="brand" href="#/">Turnwright</a>
    ${
      route.page === "runs"
        ? nothing
        : html`<span aria-hidden="true">›</span>
            <a href=${linkTo(app.lastList(route.run))}>${visibleText(route.run)}</a>`
    }
    ${name === "" ? nothing : html`<span aria-hidden="true">›</span> <span>${name}</span>`}
  </nav>`;
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
