/** A simulator's system prompt, for a task with and without an instruction. */
export interface InstructedPrompt {
  /** Holds `{instruction}` where the task's instruction goes. */
  readonly withInstruction: string;
  readonly withoutInstruction: string;
}

/** The texts that model users work with. JSON-able. */
export interface UserPrompts {
  /** System prompt of `llm`, `verify` and `reflection`. */
  readonly llm: InstructedPrompt;
  /** System prompt of `react`: asks for a `Thought:` and a `User Response:`. */
  readonly react: InstructedPrompt;
  /**
   * What the judge of `verify` and `reflection` is asked; holds `{transcript}` and `{response}`.
   * The answer is to be true or false.
   */
  readonly verify: string;
  /**
   * What the judge of `reflection` is asked about a rejected line; holds `{transcript}` and
   * `{response}`. The answer is to end with `Response:` and a better line.
   */
  readonly reflect: string;
}

/** What an agent is taken to have said before the user's first line. */
export const defaultGreeting = "Hi! How can I help you today?";

/** Puts values in the places of a prompt, in one pass: a value's own braces stay as they are. */
export function fillPrompt(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z]+)\}/g, (place, name: string) =>
    Object.hasOwn(values, name) ? (values[name] as string) : place,
  );
}

/** The system prompt for an instruction, or for none. */
export function fillInstruction(prompt: InstructedPrompt, instruction: string | null): string {
  if (instruction === null) return prompt.withoutInstruction;
  return fillPrompt(prompt.withInstruction, { instruction });
}
