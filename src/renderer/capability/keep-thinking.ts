import type { BoundTemplate } from "../bound-template.ts";
import type { HistoryEdits } from "./history-edits.ts";
import { countRewrites, measureHistoryEdits } from "./history-edits.ts";
import { createProber } from "./prober.ts";

/** A template variable that keeps earlier reasoning, and the template's effects when the variable is set. */
export interface KeepThinking {
  readonly variable: string;
  readonly value: boolean;
  readonly edits: HistoryEdits;
}

/**
 * Searches the variable with which a template rewrites less of the history. Candidates are the names in its source
 * that mention thinking or the history. Each is tried with both values and must not change the first prompt.
 *
 * @param edits - The template's effects without the variable.
 */
export function findKeepThinking(
  template: BoundTemplate,
  edits: HistoryEdits,
): KeepThinking | undefined {
  if (countRewrites(edits) === 0) return undefined;
  const firstPrompt = renderFirstPrompt(template);
  let best: KeepThinking | undefined;
  for (const variable of candidateVariables(template)) {
    for (const value of [false, true]) {
      const variant = template.with(new Map([[variable, value]]));
      if (renderFirstPrompt(variant) !== firstPrompt) continue;
      const found = measureHistoryEdits(variant);
      if (countRewrites(found) < countRewrites(best?.edits ?? edits)) {
        best = { variable, value, edits: found };
      }
    }
  }
  return best;
}

/** Names that the template reads as variables, not as fields, and that are unset. */
function candidateVariables({ source, variables }: BoundTemplate): readonly string[] {
  const names = new Set<string>();
  for (const [code] of source.matchAll(/\{[{%][\s\S]*?[%}]\}/g)) {
    for (const [name] of code.matchAll(/(?<![\w.'"])[a-z]\w*(?!['"\w])/g)) {
      if (/think|reason|histor/.test(name) && !variables.has(name)) names.add(name);
    }
  }
  return [...names];
}

function renderFirstPrompt(template: BoundTemplate): string | undefined {
  const { opening, show } = createProber(template);
  return show(opening, true);
}
