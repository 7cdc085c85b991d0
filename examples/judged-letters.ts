import { defineEnvironment, RolloutError, type PlayedEpisode } from "turnwright";

/** The judge: any server with Chat Completions. Prices are in US dollars per million tokens. */
const judge = {
  url: process.env["JUDGE_URL"] ?? "http://127.0.0.1:8000/v1",
  model: process.env["JUDGE_MODEL"] ?? "judge",
  key: process.env["JUDGE_KEY"] ?? "",
  prices: { input: 0.5, output: 1.5 },
};

/** Sends a letter to the judge. Returns its points, 0 to 10, and the cost of the judgement. */
async function judgeLetter(letter: string, signal: AbortSignal) {
  const order =
    'Rate how warm this letter of thanks is. Answer {"points": 0 to 10}, and nothing else.';
  const request = {
    method: "POST",
    headers: { authorization: `Bearer ${judge.key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: judge.model,
      temperature: 0,
      messages: [{ role: "user", content: `${order}\n\n${letter}` }],
    }),
    signal,
  };
  const reply = await fetch(`${judge.url}/chat/completions`, request).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw outage(`Cannot reach the judge ${judge.url}`, cause);
  });
  if (!reply.ok) throw outage(`The judge answered ${reply.status}`);
  const { choices, usage } = (await reply.json()) as {
    choices: { message: { content: string } }[];
    usage: { prompt_tokens: number; completion_tokens: number };
  };
  const points = Number(/"points":\s*(\d+)/.exec(choices[0]!.message.content)?.[1]);
  if (!(points <= 10)) throw outage("The judge gave no points");
  const { input, output } = judge.prices;
  const costUsd = (usage.prompt_tokens * input + usage.completion_tokens * output) / 1e6;
  return { points, costUsd };
}

/** No fault of the model's: the attempt has failed, has no reward, and is played again. */
function outage(message: string, cause?: unknown): RolloutError {
  return new RolloutError("grader/unreachable", message, { cause, retryable: true });
}

async function score(
  _state: object,
  { friend }: { readonly friend: string },
  { answer, outside, signal }: Pick<PlayedEpisode<object>, "answer" | "outside" | "signal">,
) {
  // Recorded, so that a replay and a second scoring ask nothing.
  const { points, costUsd } = await outside("judge", () => judgeLetter(answer, signal));
  const names = answer.includes(friend) ? 1 : 0;
  return {
    components: { warm: { value: points / 10, weight: 0.8 }, names: { value: names, weight: 0.2 } },
    success: points >= 7 && names === 1,
    details: { judge: { points, costUsd } },
  };
}

export default defineEnvironment({
  name: "letters",
  tasks: ["Ann", "Bo"].map((friend) => ({
    instruction: `Thank ${friend} for the bicycle.`,
    friend,
  })),
  policy: "Write the letter that the user asks for, and nothing else.",
  tools: {},
  score,
});
