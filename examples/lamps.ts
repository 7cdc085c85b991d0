import {
  InvariantError,
  createScriptedUser,
  createSeededRandom,
  UsageError,
  type Environment,
  type Step,
  type Task,
  type User,
  type UserSession,
  type World,
} from "turnwright";
import { toolsFromOpenAi } from "turnwright/environment";
import { toPyValue, type PyDict } from "turnwright/python";
import { isLeaving, textOfLine } from "turnwright/user";

/** The data of a task. JSON-able. */
export interface LampsData {
  /** The brightness of each room's lamp at the start, 0 (off) to 10. */
  readonly levels: Readonly<Record<string, number>>;
  readonly wish: { readonly room: string; readonly level: number };
  /** True if the user says no when asked to confirm. Then nothing may change. */
  readonly changesMind: boolean;
}

const splits = new Map([
  ["train", 10_000],
  ["test", 100],
]);
const rooms = ["attic", "bathroom", "hall", "kitchen", "study"] as const;

const policyText = `You look after the lamps of a house.
- Before you change a lamp, say which and how, and wait for a yes.
- Change nothing else.`;

const tools = toolsFromOpenAi(
  toPyValue([
    defineFunction("list_lamps", "List the rooms and the levels of their lamps.", {}),
    defineFunction("set_lamp", "Set the lamp of a room to a level from 0 (off) to 10.", {
      room: { type: "string" },
      level: { type: "integer", minimum: 0, maximum: 10 },
    }),
  ]),
  "the tools of lamps",
);

/** Creates a house with a resident who wants one lamp brighter or darker. */
export function createEnvironment(): Environment<LampsData> {
  return {
    name: "lamps",
    source: "generated: each task is drawn from its split and index",
    splits: Object.fromEntries(splits),
    tools,
    policyText,
    task(split, index) {
      if (!Number.isInteger(index) || index < 0 || index >= (splits.get(split) ?? 0)) {
        throw new UsageError(`Cannot draw task ${index} of split "${split}" of lamps`);
      }
      const id = `lamps/${split}/${index}`;
      const data = drawTask(id);
      return { id, environment: "lamps", split, index, instruction: toInstruction(data), data };
    },
    async open(task, { user, signal }) {
      signal.throwIfAborted();
      return openHouse(task, user);
    },
  };
}

/** Creates the resident, who states a wish, answers the first question, and leaves. */
export function createUser(): User<LampsData> {
  return createScriptedUser({
    lines({ data: { wish, changesMind } }) {
      return [
        `Please set the lamp of the ${wish.room} to ${wish.level}.`,
        changesMind ? "No, leave it as it is." : "Yes, please.",
        { text: "Thank you.", leaves: true },
      ];
    },
  });
}

function drawTask(seed: string): LampsData {
  const random = createSeededRandom(seed);
  const levels = Object.fromEntries(rooms.map((room) => [room, random.between(0, 10)]));
  const room = random.pick(rooms);
  const level = (levels[room]! + random.between(1, 10)) % 11;
  return { levels, wish: { room, level }, changesMind: random.chance(0.2) };
}

/** The task in words, for a user who is a model. */
function toInstruction({ wish, changesMind }: LampsData): string {
  const answer = changesMind ? "change your mind and say no" : "say yes";
  return (
    `You want the lamp of the ${wish.room} at level ${wish.level}. ` +
    `When you are asked to confirm, you ${answer}. Then you leave.`
  );
}

function openHouse({ id, data }: Task<LampsData>, user: UserSession): World {
  const levels = new Map(Object.entries(data.levels)); // This episode's own.
  let isDone = false;
  return {
    begin: (options) => user.begin(options),
    async step(action, options) {
      if (isDone) throw new InvariantError(`Cannot step task ${id}: the user has left`);
      if (action.type === "call") return callTool(levels, action.name, action.arguments);
      const line = await user.reply(action.content, options);
      isDone = isLeaving(line);
      const step = { observation: textOfLine(line), from: "user", source: "user" } as const;
      return isDone ? { ...step, done: "user-left" } : step;
    },
    async score() {
      const reached = Object.fromEntries(levels);
      const { wish, changesMind } = data;
      const wanted = changesMind ? data.levels : { ...data.levels, [wish.room]: wish.level };
      const isRight = rooms.every((room) => reached[room] === wanted[room]);
      return { reward: isRight ? 1 : 0, details: { reached, wanted } };
    },
    userUsage: () => user.usage(),
    async [Symbol.asyncDispose]() {},
  };
}

/** Answers every call; a wrong name or argument gets an answer that names the mistake. */
function callTool(levels: Map<string, number>, name: string, given: PyDict): Step {
  const answer = (observation: string): Step => ({ observation, from: "tool", source: name });
  const refuse = (why: string): Step => ({ ...answer(`Error: ${why}`), isError: true });
  if (name === "list_lamps") return answer(JSON.stringify(Object.fromEntries(levels)));
  if (name !== "set_lamp") return refuse(`no tool ${name}`);
  const room = given.get("room");
  const level = given.get("level"); // A whole number is a bigint, as 7 and 7.0 are not the same.
  if (typeof room !== "string" || !levels.has(room)) return refuse("no such room");
  if (typeof level !== "bigint" || level < 0n || level > 10n)
    return refuse("level is a whole number, 0 to 10");
  levels.set(room, Number(level));
  return answer(JSON.stringify({ room, level: Number(level) }));
}

/** A tool in OpenAI's shape, of which every parameter is required. */
function defineFunction<Properties extends object>(
  name: string,
  description: string,
  properties: Properties,
) {
  const parameters = { type: "object", properties, required: Object.keys(properties) };
  return { type: "function", function: { name, description, parameters } };
}
