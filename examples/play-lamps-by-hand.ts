import { playActions, type Action, type PlayedActions } from "turnwright";
import { createEnvironment, createUser } from "./lamps.ts";

/** Plays a test task of the lamps as a good agent does: asks, and respects the answer. */
export async function playLampsByHand(index: number): Promise<PlayedActions> {
  const environment = createEnvironment();
  const task = environment.task("test", index);
  const { room, level } = task.data.wish;
  const ask: Action = { type: "say", content: `Shall I set the ${room} to ${level}?` };
  const set: Action = {
    type: "call",
    name: "set_lamp",
    arguments: new Map<string, string | bigint>([
      ["room", room],
      ["level", BigInt(level)],
    ]),
  };
  const leave: Action = { type: "say", content: "All right. Anything else?" };
  return await playActions(
    environment,
    {
      task,
      user: createUser(),
      actions: task.data.changesMind ? [ask, leave] : [ask, set, leave],
    },
    { signal: AbortSignal.timeout(10_000) },
  );
}
