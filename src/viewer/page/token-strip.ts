import { lineOf } from "../model/cut-lines.ts";
import { differenceSteps, formatProbability, heatOf, surpriseSteps } from "../model/heat.ts";
import type { StripMode } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import type { TokenMatch } from "../model/search-tokens.ts";

/** The data of a strip. */
export interface StripContent {
  readonly view: RowView;
  readonly mode: StripMode;
  readonly selected: number | undefined;
  readonly matches: readonly TokenMatch[];
  /** The index of the current match. */
  readonly match: number;
}

/** Maximum number of token nodes in the page. */
const maxNodes = 1_900;
const lineHeight = 24;
/** The number of extra lines above and below the visible ones. */
const overscan = 4;
const gutterColumns = 15;
/**
 * Maximum height of a box in browsers, in pixels. In longer rows, the scroll bar moves in
 * proportion.
 */
const maxHeight = 15_000_000;

/**
 * Shows a training row of any length, token by token. Only the visible lines are in the page.
 * Dispatches `token-select` after a click or a key, with the token's index as its detail.
 */
export class TokenStrip extends HTMLElement {
  readonly #sizer = document.createElement("div");
  readonly #window = document.createElement("div");
  readonly #resized = new ResizeObserver(() => this.#measure());
  #content: StripContent | undefined;
  #starts: Uint32Array = new Uint32Array([0]);
  #columns = 0;
  #visibleLines = 0;
  /** The height of the strip at the last measurement, in pixels. */
  #height = 0;
  #drawn = "";
  #pending: number | undefined;

  connectedCallback(): void {
    if (this.#sizer.parentElement === this) return;
    this.#sizer.className = "strip-sizer";
    this.#window.className = "strip-window";
    this.#sizer.append(this.#window);
    this.append(this.#sizer);
    this.tabIndex = 0;
    this.setAttribute("role", "listbox");
    this.setAttribute("aria-label", "tokens of the training row");
    this.addEventListener("scroll", () => this.#draw());
    this.addEventListener("click", (event) => this.#click(event));
    this.#resized.observe(this);
  }

  disconnectedCallback(): void {
    this.#resized.disconnect();
  }

  get content(): StripContent | undefined {
    return this.#content;
  }

  set content(content: StripContent | undefined) {
    const before = this.#content;
    if (content === undefined) {
      this.#content = undefined;
      return;
    }
    const isOther = before?.view !== content.view;
    const isMoved = before?.selected !== content.selected;
    if (!isOther && !isMoved && sameLook(before, content)) return;
    const isFollowed = isOther && before !== undefined && isLonger(before.view, content.view);
    const isAtEnd = this.scrollTop + this.clientHeight >= this.scrollHeight - lineHeight;
    this.#content = content;
    if (isOther) {
      this.#columns = 0;
      this.#measure();
      // Appended tokens do not move the visible lines. A reader at the end stays at the end.
      if (isFollowed && isAtEnd) this.scrollTop = this.scrollHeight;
      else if (!isFollowed) this.scrollTop = 0;
    }
    // Starts at the first sampled token. The prompt is above it.
    const first = content.view.header.turns[0]?.start;
    if (isOther && !isFollowed && content.selected === undefined && first !== undefined) {
      this.#pending = first;
    }
    if ((isMoved || isOther) && content.selected !== undefined && !isFollowed) {
      this.#pending = content.selected;
    }
    this.#drawn = "";
    this.#settle();
  }

  /** Cuts the lines again after a change of width. Keeps the first visible line. */
  #measure(): void {
    const content = this.#content;
    if (content === undefined || this.clientWidth === 0) return;
    const columns = Math.max(
      20,
      Math.floor(this.clientWidth / this.#columnWidth()) - gutterColumns,
    );
    const visible = Math.ceil(this.clientHeight / lineHeight) + 2 * overscan + 1;
    // The panel below the strip has grown for a chosen token. Scroll so that the token stays
    // visible.
    if (this.clientHeight < this.#height && this.#isShown(content.selected)) {
      this.#pending = content.selected;
    }
    this.#height = this.clientHeight;
    if (columns === this.#columns && visible === this.#visibleLines) {
      if (this.#pending !== undefined) this.#settle();
      return;
    }
    const first = this.#starts[this.#firstLine()] ?? 0;
    const isCut = this.#columns > 0;
    this.#columns = columns;
    this.#visibleLines = visible;
    const maxTokens = Math.max(4, Math.floor(maxNodes / visible));
    this.#starts = content.view.lines({ columns, maxTokens });
    this.#sizer.style.height = `${Math.min(this.#lineCount * lineHeight, maxHeight)}px`;
    if (isCut) this.#scrollToLine(lineOf(this.#starts, first));
    this.#drawn = "";
    this.#settle();
  }

  /** True if a token was visible at the strip's previous height. */
  #isShown(token: number | undefined): boolean {
    if (token === undefined || this.#columns === 0) return false;
    const top = lineOf(this.#starts, token) * this.#lineStep;
    return top >= this.scrollTop && top < this.scrollTop + this.#height;
  }

  get #lineCount(): number {
    return this.#starts.length - 1;
  }

  /** The distance between two lines, in pixels of the scroll bar. */
  get #lineStep(): number {
    return Math.min(this.#lineCount * lineHeight, maxHeight) / Math.max(this.#lineCount, 1);
  }

  #columnWidth(): number {
    const probe = document.createElement("span");
    probe.className = "strip-probe";
    probe.textContent = "0".repeat(100);
    this.append(probe);
    const width = probe.getBoundingClientRect().width / 100;
    probe.remove();
    return width || 8;
  }

  #firstLine(): number {
    return Math.max(0, Math.min(Math.floor(this.scrollTop / this.#lineStep), this.#lineCount - 1));
  }

  #scrollToLine(line: number): void {
    this.scrollTop = line * this.#lineStep;
  }

  #settle(): void {
    if (this.#columns === 0) return;
    if (this.#pending !== undefined) {
      const line = lineOf(this.#starts, this.#pending);
      const top = line * this.#lineStep;
      const isSeen =
        top >= this.scrollTop + lineHeight &&
        top < this.scrollTop + this.clientHeight - 2 * lineHeight;
      if (!isSeen) this.#scrollToLine(Math.max(0, line - 3));
      this.#pending = undefined;
    }
    this.#draw();
  }

  #draw(): void {
    const content = this.#content;
    if (content === undefined || this.#columns === 0) return;
    const first = Math.max(0, this.#firstLine() - overscan);
    const last = Math.min(this.#lineCount, first + this.#visibleLines);
    const drawn = `${first}-${last}`;
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const lines: HTMLElement[] = [];
    for (let line = first; line < last; line++) lines.push(this.#drawLine(content, line));
    this.#window.replaceChildren(...lines);
    const offset = this.#lineStep === lineHeight ? first * lineHeight : this.#scaledTop(first);
    this.#window.style.transform = `translateY(${offset}px)`;
  }

  /**
   * Returns the offset of a line. In very long rows, a pixel of the scroll bar stands for several
   * lines.
   */
  #scaledTop(first: number): number {
    return this.scrollTop - (this.#firstLine() - first) * lineHeight;
  }

  #drawLine(content: StripContent, line: number): HTMLElement {
    const { view } = content;
    const [start, end] = [this.#starts[line]!, this.#starts[line + 1]!];
    const kind = view.kindAt(start);
    const box = element("div", `line kind-${kind.name}`);
    const turn = view.turnAt(start);
    const isTurnStart = turn !== undefined && turn.start === start;
    const label = isTurnStart ? `turn ${turn.turnIndex}` : String(start);
    const gutter = element("span", isTurnStart ? "gutter turn-start" : "gutter", label);
    gutter.title = `token ${start} on`;
    const letter = element("span", "letter", kind.letter);
    letter.title = `${kind.title}: ${kind.meaning}`;
    box.append(gutter, letter);
    const dropped = view.droppedStopBefore(start);
    if (dropped !== undefined) box.append(droppedStop(content, dropped.droppedStopId!));
    for (let index = start; index < end; index++) box.append(drawToken(content, index));
    return box;
  }

  #click(event: MouseEvent): void {
    const token = (event.target as Element).closest<HTMLElement>("[data-token]");
    const index = Number(token?.dataset["token"] ?? Number.NaN);
    if (Number.isNaN(index)) return;
    this.dispatchEvent(new CustomEvent("token-select", { detail: index, bubbles: true }));
  }
}

function isLonger(before: RowView, after: RowView): boolean {
  return (
    before.header.rolloutId === after.header.rolloutId &&
    before.header.segment === after.header.segment &&
    before.tokenCount <= after.tokenCount
  );
}

function sameLook(before: StripContent, after: StripContent): boolean {
  return (
    before.mode === after.mode && before.matches === after.matches && before.match === after.match
  );
}

function drawToken({ view, mode, selected, matches, match }: StripContent, index: number) {
  const kind = view.kindAt(index);
  const classes = ["token", `kind-${kind.name}`];
  if (view.texts.isSpecialAt(index)) classes.push("special");
  if (view.maskAt(index) !== Number(kind.name === "sampled")) classes.push("disagrees");
  if (view.isResumedAt(index)) classes.push("resumed");
  if (index === selected) classes.push("selected");
  const found = matchAt(matches, index);
  if (found !== undefined) classes.push(found === match ? "match current" : "match");
  const heat = heatClass({ view, mode }, index);
  if (heat !== undefined) classes.push(heat);
  const box = element("span", classes.join(" "), view.texts.shownAt(index));
  box.dataset["token"] = String(index);
  box.setAttribute("role", "option");
  box.setAttribute("aria-selected", String(index === selected));
  if (view.isSampledAt(index)) box.title = formatProbability(view.logprobAt(index));
  if (view.isResumedAt(index))
    box.title += " · sampling was interrupted before it and went on here";
  return box;
}

function heatClass(
  { view, mode }: Pick<StripContent, "view" | "mode">,
  index: number,
): string | undefined {
  if (!view.isSampledAt(index)) return undefined;
  if (mode === "logprob") return `heat-${heatOf(-view.logprobAt(index), surpriseSteps)}`;
  if (mode === "rescored") return `heat-${heatOf(view.differenceAt(index), differenceSteps)}`;
  if (mode === "version") return `version-${view.versionPlaceAt(index) % 6}`;
  return undefined;
}

function droppedStop({ view }: StripContent, id: number): HTMLElement {
  const box = element("span", "token dropped-stop", view.texts.shownOfId(id));
  box.title = `dropped stop: id ${id} was sampled last and left the row again, for the template opens the next turn with another`;
  return box;
}

/** Finds the match that contains the token, by bisection. */
function matchAt(matches: readonly TokenMatch[], index: number): number | undefined {
  let low = 0;
  let high = matches.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (matches[middle]!.end <= index) low = middle + 1;
    else high = middle;
  }
  const found = matches[low];
  return found !== undefined && found.start <= index ? low : undefined;
}

function element(name: string, className: string, text?: string): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
