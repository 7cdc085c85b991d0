import { defineEnvironment, refuse } from "turnwright";
import { z } from "zod";

/** A house with lamps. Somebody wants one of them at another level. */
export default defineEnvironment({
  name: "my-environment",
  tasks: {
    train: [taskOf("hall", 3), taskOf("attic", 10), taskOf("hall", 7)],
    test: [taskOf("kitchen", 5), taskOf("study", 0)],
  },
  // What an episode begins with. Each has its own: a tool may change it.
  initialState: () => ({ levels: { attic: 0, hall: 1, kitchen: 2, study: 3 } }),
  policy: "You look after the lamps of a house. Change only what you are asked to change.",
  tools: {
    list_lamps: {
      description: "List the rooms and the levels of their lamps.",
      execute: (_, { levels }) => levels,
    },
    set_lamp: {
      description: "Set the lamp of a room to a level from 0 (off) to 10.",
      parameters: z.object({ room: z.string(), level: z.number().int().min(0).max(10) }),
      execute({ room, level }, { levels }) {
        // The model's mistake: it is told, and nothing has changed.
        if (!Object.hasOwn(levels, room)) refuse(`there is no lamp in ${room}`);
        levels[room] = level;
        return { room, level };
      },
    },
  },
  // The same calls have the same results: an episode goes on after a crash, and can be forked.
  repeatable: true,
  // What the state is worth in the end: `wanted` is compared with it, and `show` prints what differs.
  score: (_, { room, level }, { initial }) => ({
    wanted: { levels: { ...initial.levels, [room]: level } },
  }),
});

/** What a task consists of: the instruction, and what the parts above want to know of it. */
function taskOf(room, level) {
  return { instruction: `Please set the lamp of the ${room} to ${level}.`, room, level };
}
