import { UsageError } from "../errors.ts";
import type { InstructedPrompt, UserPrompts } from "./user-prompts.ts";

/**
 * Takes the prompts out of the Python source of τ-bench's user simulators, so that a checkout can
 * be used as it is. Reads only what it needs, by the names of its classes and functions; the source
 * is never run.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py.
 *
 * @throws UsageError naming the place where a prompt is not found as expected.
 */
export function userPromptsFromPython(source: string, file: string): UserPrompts {
  const place = (name: string): { source: string; place: string } => ({
    source: definition(source, name, file),
    place: `${file}: ${name}`,
  });
  return {
    llm: systemPrompt(place("class LLMUserSimulationEnv")),
    react: systemPrompt(place("class ReactUserSimulationEnv")),
    verify: formatString(place("def verify"), ["transcript", "response"]),
    reflect: formatString(place("def reflect"), ["transcript", "response"]),
  };
}

interface Definition {
  readonly source: string;
  readonly place: string;
}

/** From a top-level definition's own line to the next one. */
function definition(source: string, name: string, file: string): string {
  const start = new RegExp(`^${name}\\b`, "m").exec(source)?.index;
  if (start === undefined) throw new UsageError(`Cannot read ${file}: expected "${name}" in it`);
  const length = source.slice(start + 1).search(/^(?:class|def|@)/m);
  return length < 0 ? source.slice(start) : source.slice(start, start + 1 + length);
}

/** `instruction_display` is put together from two texts around the instruction, or is empty. */
function systemPrompt({ source, place }: Definition): InstructedPrompt {
  const around = /\(\s*("(?:[^"\\\n]|\\.)*")\s*\+\s*instruction\s*\+\s*("(?:[^"\\\n]|\\.)*")\s*\)/;
  const [, before, after] = around.exec(source) ?? [];
  if (before === undefined || after === undefined) {
    throw new UsageError(`Cannot read ${place}: expected ("…" + instruction + "…") in it`);
  }
  const template = formatString({ source, place }, ["instruction_display"]);
  const [head, tail] = template.split("{instruction_display}") as [string, string];
  const middle = `${JSON.parse(before)}{instruction}${JSON.parse(after)}`;
  return { withInstruction: head + middle + tail, withoutInstruction: head + tail };
}

/** The one triple-quoted f-string, with exactly the given places, each once. */
function formatString({ source, place }: Definition, names: readonly string[]): string {
  const [text, more] = Array.from(source.matchAll(/\bf"""([^]*?)"""/g), (match) => match[1] ?? "");
  if (text === undefined || more !== undefined) {
    throw new UsageError(`Cannot read ${place}: expected one f"""…""" in it`);
  }
  const places = Array.from(text.matchAll(/\{([^{}]*)\}/g), (match) => match[1] ?? "");
  const isPlain = !text.includes("\\") && places.toSorted().join() === names.toSorted().join();
  if (isPlain) return text;
  throw new UsageError(
    `Cannot read ${place}: its f-string has ${places.map((name) => `{${name}}`).join(", ")}, ` +
      `expected ${names.map((name) => `{${name}}`).join(", ")} and no backslash`,
  );
}
