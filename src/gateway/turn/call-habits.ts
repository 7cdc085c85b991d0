import type { Message } from "../../message.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { createProbe, type ShowProbe } from "./show-probe.ts";
import { measureTurnForms, wholeTurns, type TurnForms } from "./turn-forms.ts";

/** The rules by which a chat template renders calls and their results. */
export interface CallHabits {
  /**
   * True if the template accepts ids of any length. Otherwise an id must have nine letters and digits, as for Mistral.
   */
  readonly takesAnyId: boolean;
  /**
   * True if the template renders a call as `functions.NAME:INDEX` instead of its id, and a result under the result's
   * own id, as Kimi K2's does.
   */
  readonly numbersCalls: boolean;
  /**
   * True if the name of a call's tool is rendered in the call's id alone, as by Kimi K2.5's template.
   * The id must then be `functions.NAME:NUMBER`, with a number that counts the conversation's calls.
   */
  readonly namesByIds: boolean;
  /** True if the template looks up a result's call in the entire conversation, so that ids must be unique. */
  readonly looksUpIds: boolean;
  /** True if the template renders all calls of a turn. Otherwise it refuses or drops the calls after the first one. */
  readonly showsAllCalls: boolean;
  /** True if the template accepts turns with calls and does not render the calls, as LFM2's does. */
  readonly dropsCalls: boolean;
  /**
   * True if it prints arguments that are no JSON object, as a client may send them: unchanged, or as a JSON string.
   */
  readonly takesTextArguments: boolean;
  /** The forms in which it shows turns with text and calls. */
  readonly turnForms: TurnForms;
}

/** Rules for templates that cannot be measured. The ids that these rules lead to suit every template. */
export const strictestHabits: CallHabits = {
  takesAnyId: false,
  numbersCalls: false,
  namesByIds: false,
  looksUpIds: true,
  showsAllCalls: true,
  dropsCalls: false,
  takesTextArguments: true,
  turnForms: wholeTurns,
};

/** Measures a template by rendering conversations with different ids. */
export async function measureCallHabits(renderer: Renderer): Promise<CallHabits> {
  const probe = createProbe(renderer);
  const turnForms = await measureTurnForms(probe, renderer.rerender !== undefined);
  const show = async (
    rounds: readonly Round[],
    nameOf?: (name: string) => string,
  ): Promise<string | undefined> =>
    await probe(rounds.flatMap((round) => messagesOf(round, nameOf)));
  for (const shape of [together, apart]) {
    const shown = await show(shape([first, second, third]));
    if (shown === undefined || !shownValues.every((value) => shown.includes(value))) continue;
    const odd = await show(shape(oddIds));
    const repeated = await show(shape([first, second, first]));
    const renamed = await show(shape([first, second, third]), otherProbe);
    return {
      takesAnyId: odd !== undefined,
      numbersCalls: shown.includes(first) && shown.includes(numberedId("probe_alpha", 0)),
      namesByIds: shown.includes(first) && renamed === shown,
      looksUpIds: repeated !== shown.replaceAll(third, first),
      showsAllCalls: shape === together,
      dropsCalls: false,
      takesTextArguments: await printsTextArguments(probe),
      turnForms,
    };
  }
  const bare = await show([[call("alpha", first)]]);
  const other = await show([[{ ...call("alpha", first), value: "other" }]]);
  return { ...strictestHabits, dropsCalls: bare !== undefined && bare === other, turnForms };
}

/** True if the template prints arguments that are cut off exactly once. */
async function printsTextArguments(probe: ShowProbe): Promise<boolean> {
  const argumentsText = '{"n": "value';
  const { id, name } = call("alpha", first);
  const shown = await probe([
    { role: "assistant", content: "", toolCalls: [{ id, name, argumentsText }] },
    { role: "tool", content: "Done", toolCallId: id, name },
  ]);
  const spellings = [argumentsText, JSON.stringify(argumentsText)];
  return spellings.some((text) => shown?.split(text).length === 2);
}

/** Returns two calls in one turn and one in the next. */
function together([a, b, c]: Ids): readonly Round[] {
  return [[call("alpha", a), call("beta", b)], [call("alpha", c)]];
}

/** Returns three turns with one call each. */
function apart([a, b, c]: Ids): readonly Round[] {
  return [[call("alpha", a)], [call("beta", b)], [call("alpha", c)]];
}

/** Returns the id of a call as Kimi's models write it. */
export function numberedId(name: string, place: number | ""): string {
  return `functions.${name}:${place}`;
}

/** True if the id is one that Kimi's models write for a call of the tool. */
export function isNumberedId(id: string, name: string): boolean {
  const start = numberedId(name, "");
  return id.startsWith(start) && /^\d{1,9}$/.test(id.slice(start.length));
}

type Ids = readonly [string, string, string];

const [first, second, third]: Ids = ["tw0prob1a", "tw0prob2b", "tw0prob3c"];

/** Ids as clients send them: short, with punctuation, and long. */
const oddIds: Ids = ["c1", "functions.probe_beta:0", "call_00000000000000000000prob"];

interface ProbeCall {
  readonly name: string;
  readonly id: string;
  /** The value of the call's only argument. */
  readonly value: string;
}

type Round = readonly ProbeCall[];

function call(kind: string, id: string): ProbeCall {
  return { name: `probe_${kind}`, id, value: `value for probe_${kind}` };
}

/** Arguments that appear in the rendered text only if their call is rendered. */
const shownValues = ["value for probe_alpha", "value for probe_beta"];

/** Returns the name of the other probe. */
function otherProbe(name: string): string {
  return name === "probe_alpha" ? "probe_beta" : "probe_alpha";
}

/**
 * Returns the messages of a round of calls: the calls, then their results.
 *
 * @param nameOf - The name of the tool in a call. Its arguments and its result keep the original name.
 */
function messagesOf(round: Round, nameOf = (name: string): string => name): readonly Message[] {
  const toolCalls = round.map(({ id, name, value }) => {
    return { id, name: nameOf(name), argumentsText: `{"n": "${value}"}` };
  });
  return [
    { role: "assistant", content: "", toolCalls },
    ...round.map(({ id: toolCallId, name }): Message => {
      return { role: "tool", content: "Done", toolCallId, name };
    }),
  ];
}
