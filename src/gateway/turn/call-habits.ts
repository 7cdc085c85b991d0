import { RolloutError, UsageError } from "../../errors.ts";
import { toolFromOpenAi, type Message, type ToolDefinition } from "../../message.ts";
import { toPyValue } from "../../python/value.ts";
import type { Renderer } from "../../renderer/renderer.ts";

/** The way in which a chat template shows calls and their results. */
export interface CallHabits {
  /** True where it accepts ids of any length; otherwise it accepts nine letters and digits, as Mistral's do. */
  readonly takesAnyId: boolean;
  /**
   * True where it shows a call as `functions.NAME:PLACE`, its id notwithstanding, and the result under the id that
   * the result has, as Kimi K2's does.
   */
  readonly numbersCalls: boolean;
  /** True where it looks a result's call up in the whole conversation, so that no id may come twice. */
  readonly looksUpIds: boolean;
  /** True where it shows all calls of a turn; otherwise it refuses those after the first, or leaves them out. */
  readonly showsAllCalls: boolean;
}

/** Habits that every id of ours is right for: those of templates that cannot be measured. */
export const strictestHabits: CallHabits = {
  takesAnyId: false,
  numbersCalls: false,
  looksUpIds: true,
  showsAllCalls: true,
};

/** Measures a template by rendering conversations whose ids differ. */
export async function measureCallHabits(renderer: Renderer): Promise<CallHabits> {
  const show = async (rounds: readonly Round[]): Promise<string | undefined> =>
    await render(renderer, [{ role: "user", content: "Hi" }, ...rounds.flatMap(messagesOf)]);
  for (const shape of [together, apart]) {
    const shown = await show(shape([first, second, third]));
    if (shown === undefined || !shownValues.every((value) => shown.includes(value))) continue;
    const odd = await show(shape(oddIds));
    const repeated = await show(shape([first, second, first]));
    return {
      takesAnyId: odd !== undefined,
      numbersCalls: shown.includes(first) && shown.includes(numberedId("probe_alpha", 0)),
      looksUpIds: repeated !== shown.replaceAll(third, first),
      showsAllCalls: shape === together,
    };
  }
  return strictestHabits;
}

/** Two calls in one turn, and one in the next. */
function together([a, b, c]: Ids): readonly Round[] {
  return [[call("alpha", a), call("beta", b)], [call("alpha", c)]];
}

/** Each call in a turn of its own. */
function apart([a, b, c]: Ids): readonly Round[] {
  return [[call("alpha", a)], [call("beta", b)], [call("alpha", c)]];
}

/** The id of a call as Kimi's models know it. */
export function numberedId(name: string, place: number): string {
  return `functions.${name}:${place}`;
}

type Ids = readonly [string, string, string];

const [first, second, third]: Ids = ["tw0prob1a", "tw0prob2b", "tw0prob3c"];

/** Ids as clients send them: short, with other signs, and long. */
const oddIds: Ids = ["c1", "functions.probe_beta:0", "call_00000000000000000000prob"];

interface ProbeCall {
  readonly name: string;
  readonly id: string;
}

type Round = readonly ProbeCall[];

function call(kind: string, id: string): ProbeCall {
  return { name: `probe_${kind}`, id };
}

/** Arguments that stand in a text only where their call is shown. */
const shownValues = ["value for probe_alpha", "value for probe_beta"];

function messagesOf(round: Round): readonly Message[] {
  const toolCalls = round.map(({ id, name }) => {
    return { id, name, argumentsText: `{"n": "value for ${name}"}` };
  });
  return [
    { role: "assistant", content: "", toolCalls },
    ...round.map(({ id: toolCallId, name }): Message => {
      return { role: "tool", content: "Done", toolCallId, name };
    }),
  ];
}

const probeTools: readonly ToolDefinition[] = ["probe_alpha", "probe_beta"].map((name) =>
  toolFromOpenAi(
    toPyValue({
      type: "function",
      function: {
        name,
        description: "Probes.",
        parameters: { type: "object", properties: { n: { type: "string" } } },
      },
    }),
    name,
  ),
);

/** The text of a conversation; `undefined` where the template refuses it. */
async function render(
  renderer: Renderer,
  messages: readonly Message[],
): Promise<string | undefined> {
  // Some templates show no tools, and refuse a conversation with any; others need them.
  for (const tools of [probeTools, []]) {
    try {
      return (await renderer.prompt({ messages, tools })).text;
    } catch (error) {
      if (error instanceof UsageError) continue;
      if (error instanceof RolloutError && error.code !== "internal/tokenizer") continue;
      throw error;
    }
  }
  return undefined;
}
