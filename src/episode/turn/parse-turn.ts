import type { Reading } from "../../agent/agent.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { Generation } from "../../engine/engine.ts";
import { checkReading } from "../check/check-agent.ts";
import { callAgent, type Play } from "../play.ts";
import { rendererOf } from "../renderer-of.ts";
import { recordForm } from "./record-form.ts";
import type { RecordedTurn } from "./record-turn.ts";

/** Has the agent parse a turn, and adds the form of the turn to its record. */
export async function parseTurn(
  play: Play,
  { turnIndex, text, stopText, note }: RecordedTurn,
  { finish, outputIds }: Generation,
): Promise<Reading> {
  const { agent } = play.setup;
  if (isTurnOver()) await takeTurn();
  const what = `read turn ${turnIndex}`;
  const read = callAgent(play, what, () =>
    agent.read({
      text,
      stopText,
      tools: play.tools,
      turnIndex,
      finish: finish.type,
      reasoningOpened: play.reasoningOpened,
    }),
  );
  // Most agents answer at once: a thousand episodes save an await each.
  const given = read instanceof Promise ? await read : read;
  const place = `agent.read() of ${agent.strategy}`;
  const checked = callAgent(play, what, () =>
    checkReading(given, place, text.length + stopText.length),
  );
  const reading = checked instanceof Promise ? await checked : checked;
  const recorded = recordForm(reading.form, rendererOf(play.setup).codec, {
    ids: outputIds,
    text: text + stopText,
  });
  const form = recorded instanceof Promise ? await recorded : recorded;
  const { attemptCounts, reasoning } = reading;
  note(reasoning === "" ? { attemptCounts } : { reasoning, attemptCounts });
  note(form);
  return reading;
}
