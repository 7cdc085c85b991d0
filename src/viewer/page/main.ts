import { render } from "lit/html.js";
import { pageTitle } from "../model/page-title.ts";
import { httpSource } from "./http-source.ts";
import { inlinedSource } from "./inlined-source.ts";
import { onKey } from "./keyboard.ts";
import { shell } from "./shell.ts";
import { TokenStrip } from "./token-strip.ts";
import { ViewerApp } from "./viewer-app.ts";
import { VirtualList } from "./lists/virtual-list.ts";

customElements.define("token-strip", TokenStrip);
customElements.define("virtual-list", VirtualList);

let shownTurn = "";

/** Scrolls to the chosen turn, once after each change. */
function showTurn({ route }: ViewerApp): void {
  const wanted =
    route.page === "episode" && route.turn !== undefined ? `${route.episode} ${route.turn}` : "";
  if (wanted === shownTurn) return;
  const turn = document.querySelector(".turn.selected");
  if (wanted !== "" && turn === null) return;
  shownTurn = wanted;
  turn?.scrollIntoView({ block: "nearest" });
}

const app = new ViewerApp(inlinedSource() ?? httpSource(), (drawn) => {
  render(shell(drawn), document.body);
  document.title = pageTitle(drawn.route);
  showTurn(drawn);
});
document.addEventListener("keydown", (event) => onKey(app, event));
void app.start();
