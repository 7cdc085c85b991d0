import {
  defineEnvironment,
  defineTool,
  evaluate,
  readRun,
  refuse,
  rollout,
  type DefinedEnvironment,
  type Environment,
  type Evaluation,
  type Rollout,
  type RolloutEpisode,
  type Tool,
} from "turnwright";
import { createStorefront } from "turnwright/environments/storefront";
import { startSglangTestServer, createTextPolicy } from "turnwright/testing";

interface Desk {
  readonly loans: Map<string, string>;
}

const lend: Tool<Desk> = defineTool({
  name: "lend",
  description: "Lend a book.",
  parameters: { type: "object", properties: { book: { type: "string" } } },
  execute: ({ book }: { book: string }, { loans }: Desk) =>
    loans.has(book) ? refuse("it is out") : loans.set(book, "Ann"),
});

export const desk: DefinedEnvironment<{ instruction: string; book: string }> = defineEnvironment({
  name: "desk",
  tasks: [{ instruction: "Lend me Emma.", book: "Emma" }],
  initialState: () => ({ loans: new Map<string, string>() }),
  policy: "You lend books.",
  tools: [lend],
  score: ({ loans }, { book }) => loans.get(book) === "Ann",
});

export const environment: Environment = desk;

/** The types of everything that is handed out can be named. */
export async function play(url: string, model: string): Promise<Evaluation> {
  const run: Rollout = rollout({ environment, url, model, samples: 4 });
  for await (const { groupId, episodes } of run) {
    const [played]: readonly RolloutEpisode[] = episodes;
    const reward: number | undefined = played?.reward;
    const ids: readonly number[] = played?.samples[0]?.tokenIds ?? [];
    console.log(groupId, reward, ids.length);
  }
  console.log((await run).end);
  for await (const row of (await readRun("runs/first")).episodes()) console.log(row.rolloutId);
  const policy = await createTextPolicy(["Hello."], { modelDir: model });
  await using server = await startSglangTestServer({ policy });
  console.log(server.url, createStorefront().name);
  return await evaluate({ environment, url, model, trials: 4 });
}
