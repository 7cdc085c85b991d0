import { defineEnvironment, refuse } from "turnwright";
import { z } from "zod";

const rooms = ["attic", "hall", "kitchen", "study"] as const;
type Room = (typeof rooms)[number];

/** The parts of a task: the instruction, and the data for the functions below. */
interface LampTask {
  readonly instruction: string;
  readonly room: Room;
  readonly level: number;
}

/** The state of an episode. Tools change it. */
interface House {
  levels: Record<Room, number>;
}

/** A house with lamps. Somebody wants one of them at another level. */
export default defineEnvironment({
  name: "my-environment",
  tasks: {
    train: [taskOf("hall", 3), taskOf("attic", 10), taskOf("hall", 7)],
    test: [taskOf("kitchen", 5), taskOf("study", 0)],
  },
  // The initial state. Each episode has its own.
  initialState: (): House => ({ levels: { attic: 0, hall: 1, kitchen: 2, study: 3 } }),
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
        // A mistake of the model: it reads the reason, and nothing has changed.
        if (!isRoom(room)) return refuse(`there is no lamp in ${room}`);
        levels[room] = level;
        return { room, level };
      },
    },
  },
  // The same calls have the same results: an episode can continue after a crash, and can be forked.
  repeatable: true,
  // `wanted` is compared with the final state, and `show` prints each difference.
  score: (_, { room, level }, { initial }) => ({
    wanted: { levels: { ...initial.levels, [room]: level } },
  }),
});

function taskOf(room: Room, level: number): LampTask {
  return { instruction: `Please set the lamp of the ${room} to ${level}.`, room, level };
}

function isRoom(name: string): name is Room {
  return rooms.some((room) => room === name);
}
