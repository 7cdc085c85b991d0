import { html, nothing, type TemplateResult } from "lit/html.js";
import { describeInterval } from "../../report/statistics/describe-interval.ts";
import type { Estimate } from "../../report/statistics/interval.ts";
import type { EpisodeEntry, RunState } from "../model/episode-entry.ts";
import { rewardTone } from "../model/reward-tone.ts";
import { visibleText } from "../model/visible-text.ts";
import type { Loaded, ViewerApp } from "./viewer-app.ts";

/** Renders a value when it is loaded. Until then shows that it is loading, or the error. */
export function whenReady<Value>(
  loaded: Loaded<Value>,
  draw: (value: Value) => TemplateResult,
): TemplateResult {
  switch (loaded.state) {
    case "ready":
      return draw(loaded.value);
    case "loading":
      return html`<p class="waiting" role="status">reading…</p>`;
    case "failed":
      return html`<p class="broken" role="alert">${visibleText(loaded.message)}</p>`;
  }
}

/** Renders an episode's reward with its number, sign and colour. */
export function rewardBadge({
  reward,
  success,
  outcome,
}: Pick<EpisodeEntry, "reward" | "success" | "outcome">): TemplateResult {
  if (reward === undefined) {
    const isFailed = outcome === "failed";
    const title = isFailed ? "failed: no reward" : "nothing scored it";
    return html`<span class="reward none" title=${title}>${isFailed ? "✕" : "–"}</span>`;
  }
  const tone = rewardTone({ reward, success });
  const sign = { good: "✓", bad: "✗", mixed: "◐" }[tone];
  return html`<span class="reward ${tone}"
    ><span aria-hidden="true">${sign}</span> ${formatNumber(reward)}</span
  >`;
}

/** Formats a number with few digits for comparisons. */
export function formatNumber(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return value.toLocaleString("en-US", { maximumFractionDigits: 3 });
}

/** Renders an estimate with its 95 % interval. Renders nothing without an estimate. */
export function estimateOf(estimate: Estimate | undefined): TemplateResult | typeof nothing {
  if (estimate === undefined) return nothing;
  const { value, low, high } = estimate;
  const title = `95 % interval: ${describeInterval(estimate)}`;
  return html`<span class="estimate" title=${title}
    >${value.toFixed(3)}${
      low === undefined || high === undefined
        ? nothing
        : html` <span class="faint">${low.toFixed(2)} to ${high.toFixed(2)}</span>`
    }</span
  >`;
}

/** Formats a duration. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

const stateWords: Readonly<Record<RunState, string>> = {
  finished: "finished",
  interrupted: "interrupted",
  "too-many-failures": "stopped: too many failures",
  running: "running",
  stopped: "not finished, no process plays it",
  removed: "its folder is gone",
};

/** True if a run is being played, as far as the page knows. */
export function isPlayed(app: ViewerApp, run: string): boolean {
  const list = app.list(run);
  return list.state !== "ready" || list.value.facts.state === "running";
}

/** Renders the state of a run. */
export function stateBadge(state: RunState): TemplateResult {
  return html`<span class="state state-${state}">${stateWords[state]}</span>`;
}

/** Describes briefly how an episode ended. */
export function endOf({ outcome, stopReason, failureCode }: EpisodeEntry): TemplateResult {
  if (outcome === "failed") return html`<span class="end-failed">${failureCode ?? "failed"}</span>`;
  return html`<span class=${outcome === "completed" ? "end-completed" : "end-cut"}
    >${outcome === "truncated" ? "cut off: " : ""}${stopReason}</span
  >`;
}

/** Renders one button of a group in which one is chosen. */
export function choice(
  app: ViewerApp,
  about: {
    readonly label: string;
    readonly isOn: boolean;
    readonly title?: string;
    readonly choose: () => void;
  },
): TemplateResult {
  return html`<button
    type="button"
    class="choice"
    aria-pressed=${about.isOn}
    title=${about.title ?? nothing}
    @click=${() => {
      about.choose();
      app.update();
    }}
  >
    ${about.label}
  </button>`;
}

/** Copies a text to the clipboard and shows a notice. */
export async function copyText(app: ViewerApp, text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from a file may not use the clipboard. The browser can still copy a selection.
    if (!copySelected(text)) {
      app.note(`the browser does not let the page copy ${what}`);
      return;
    }
  }
  app.note(`copied ${what}`);
}

function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "copied";
  field.value = text;
  document.body.append(field);
  field.select();
  // A text field changes line ends, so the listener puts the exact text on the clipboard.
  const copyExactly = (event: ClipboardEvent): void => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  document.addEventListener("copy", copyExactly);
  const isCopied = document.execCommand("copy");
  document.removeEventListener("copy", copyExactly);
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
