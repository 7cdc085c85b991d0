import type { AssistantMessage, Message } from "../../message.ts";
import type { ShowProbe } from "./show-probe.ts";

/** The form in which a chat template shows a turn with text and calls. */
export type TurnForm =
  /** One turn with all its parts. */
  | "whole"
  /** A turn with the text, then one with the calls. The reasoning stands with the calls. */
  | "text-first"
  /** A turn with the reasoning and the text, then one with the calls. */
  | "reasoned-text-first"
  /** No form shows the calls of such a turn. */
  | "calls-lost";

/** The forms of turns with text and calls. */
export interface TurnForms {
  readonly withoutReasoning: TurnForm;
  readonly withReasoning: TurnForm;
  /** True if the text of a whole turn is printed after its calls. */
  readonly putsCallsFirst: boolean;
}

/** The forms for templates that cannot be measured. */
export const wholeTurns: TurnForms = {
  withoutReasoning: "whole",
  withReasoning: "whole",
  putsCallsFirst: false,
};

/**
 * Measures the forms in which a template shows turns with text and calls: in one turn if that shows both, otherwise in
 * two turns if these show more.
 *
 * @param isServed - True if prompts must be those of a server with this template. Then a turn is divided only if the
 *   template refuses it.
 */
export async function measureTurnForms(show: ShowProbe, isServed: boolean): Promise<TurnForms> {
  let putsCallsFirst = false;
  const measure = async (forms: readonly TurnForm[], reasoning?: string): Promise<TurnForm> => {
    let best: TurnForm | undefined;
    let most = -1;
    for (const form of forms) {
      const prompt = await show(conversation(form, reasoning));
      if (prompt === undefined) continue;
      const count = countShown(prompt, reasoning);
      if (form === "whole" && count >= 2) {
        putsCallsFirst ||= prompt.indexOf(said) > prompt.indexOf(later);
      }
      if (form === "whole" && (isServed || count >= 2)) return form;
      if (count > most) [best, most] = [form, count];
    }
    return most === 0 && !isServed ? "calls-lost" : (best ?? "whole");
  };
  const withoutReasoning = await measure(["whole", "text-first"]);
  const reasonedForms = ["whole", "reasoned-text-first", "text-first"] as const;
  const withReasoning = await measure(reasonedForms, "thoughtkqz");
  return { withoutReasoning, withReasoning, putsCallsFirst };
}

const said = "saidkqz";
const earlier = "earlierkqz";
const later = "laterkqz";

/** Counts the kinds of parts that a prompt shows, by importance: calls, then text, then reasoning. */
function countShown(prompt: string, reasoning: string | undefined): number {
  if (!prompt.includes(earlier) || !prompt.includes(later)) return 0;
  if (!prompt.includes(said)) return 1;
  return reasoning === undefined || prompt.includes(reasoning) ? 3 : 2;
}

/**
 * Returns a conversation with such a turn at its start, and one at its end. Templates may require that roles
 * alternate, and may show only one of the two turns' reasoning.
 */
function conversation(form: TurnForm, reasoning: string | undefined): readonly Message[] {
  return [
    ...probeTurn(form, { content: "First.", value: earlier, reasoning: reasoning && "Begin." }),
    { role: "assistant", content: "Done." },
    { role: "user", content: "Again." },
    ...probeTurn(form, { content: said, value: later, reasoning }),
  ];
}

function probeTurn(
  form: TurnForm,
  {
    content,
    value,
    reasoning,
  }: {
    readonly content: string;
    readonly value: string;
    readonly reasoning: string | undefined;
  },
): readonly Message[] {
  const id = value === later ? "tw0prob2b" : "tw0prob1a";
  const name = "probe_alpha";
  const turn: AssistantMessage = {
    role: "assistant",
    content,
    ...(reasoning !== undefined && { reasoning }),
    toolCalls: [{ id, name, argumentsText: JSON.stringify({ n: value }) }],
  };
  return [...divideTurn(turn, form), { role: "tool", content: "Ok.", toolCallId: id, name }];
}

/** Returns the form in which the template shows a turn. */
export function formOf(
  { reasoning, toolCalls = [] }: Pick<AssistantMessage, "reasoning" | "toolCalls">,
  { withReasoning, withoutReasoning }: TurnForms,
): TurnForm {
  if (toolCalls.length === 0) return "whole";
  return reasoning === undefined ? withoutReasoning : withReasoning;
}

/** Divides a turn with text and calls as its form requires. Other turns stay as they are. */
export function divideTurn(turn: AssistantMessage, form: TurnForm): readonly AssistantMessage[] {
  const { content, reasoning, toolCalls } = turn;
  if (form === "whole" || toolCalls === undefined) return [turn];
  // White space says nothing, but some templates drop the calls beside it.
  if (content.trim() === "") return [{ ...turn, content: "" }];
  if (form === "calls-lost") return [turn];
  const thought = reasoning === undefined ? {} : { reasoning };
  const isTextReasoned = form === "reasoned-text-first";
  return [
    { role: "assistant", content, ...(isTextReasoned && thought) },
    { role: "assistant", content: "", ...(!isTextReasoned && thought), toolCalls },
  ];
}
