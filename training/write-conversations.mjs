// Writes training conversations: storefront tasks of the train split, led by an agent by rule, in exactly
// the pieces in which a rollout would encode them.
//
//   node training/write-conversations.mjs --out FILE --count N [--mistakes RATE] [--from INDEX]
//
// Without --mistakes it is the expert, and what was not solved in the end is left out. With it, it is a
// novice, whose mistakes are learned as all else and who does not solve everything. --from is the first
// task, so that several files can be written side by side.
//
// The first line is {"prefix"}: what every conversation starts with. Each other line is
// {"level","pieces":[[text, trained], …]}: `trained` is 1 for what a policy would have sampled, 0 for
// what it reads, and 0 for the expert's deliberate slips, which are there to be recovered from.
import { createWriteStream, readFileSync } from "node:fs";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { createStorefront, demonstrate, createStorefrontNovice } from "../dist/environments/storefront/index.js";
import { compileChatTemplate } from "../dist/packages/chat-template/src/chat-template.js";
import { toTemplateMessage, toTemplateTools } from "../dist/src/renderer/openai-messages.js";

const { values } = parseArgs({
  options: {
    out: { type: "string" },
    count: { type: "string" },
    mistakes: { type: "string" },
    from: { type: "string", default: "0" },
  },
});
const count = Number(values.count);
const mistakeRate = values.mistakes === undefined ? undefined : Number(values.mistakes);
if (values.out === undefined || !Number.isInteger(count) || Number.isNaN(mistakeRate)) {
  console.error(
    "Usage: node training/write-conversations.mjs --out FILE --count N [--mistakes RATE] [--from INDEX]",
  );
  process.exit(2);
}

/** Three conversations in ten have slips in them. */
const slipRates = [0, 0, 0, 0, 0, 0, 0, 0.15, 0.15, 0.3];
const stop = "<|im_end|>";

const storefront = createStorefront();
const template = compileChatTemplate(
  readFileSync(new URL("chat-template.jinja", import.meta.url), "utf8"),
);

function render(messages, { tools = [], addGenerationPrompt = true } = {}) {
  return template.render({
    messages: messages.map(toTemplateMessage),
    tools: toTemplateTools(tools),
    addGenerationPrompt,
    variables: new Map(),
  });
}

const system = { role: "system", content: storefront.policyText };
const prefix = render([system], { tools: storefront.tools, addGenerationPrompt: false });

/** What the template adds between a sampled turn and the next. */
function delta(message) {
  const text = render([
    { role: "user", content: "x" },
    { role: "assistant", content: "SAMPLED" },
    message,
  ]);
  return text.slice(text.lastIndexOf(`SAMPLED${stop}`) + "SAMPLED".length + stop.length);
}

function toPieces({ messages, turns }) {
  const [opening, ...rest] = messages;
  const observations = rest.filter(({ role }) => role !== "assistant");
  const pieces = [[render([opening]), 0]];
  for (const [index, { text, isSlip }] of turns.entries()) {
    pieces.push([text + stop, isSlip ? 0 : 1]);
    if (index < turns.length - 1) pieces.push([delta(observations[index]), 0]);
  }
  return pieces;
}

const out = createWriteStream(values.out);
out.write(`${JSON.stringify({ prefix })}\n`);
for (let index = Number(values.from), written = 0; written < count; index++) {
  const task = storefront.task("train", index);
  const demonstration =
    mistakeRate === undefined
      ? await demonstrate(task, {
          seed: index,
          slipRate: slipRates[Math.floor(index / 5) % slipRates.length],
        })
      : await demonstrate(task, {
          seed: index,
          agent: createStorefrontNovice({ seed: index, mistakeRate }),
        });
  if (mistakeRate === undefined && demonstration.reward !== 1) continue;
  const row = { level: task.data.level, pieces: toPieces(demonstration) };
  if (!out.write(`${JSON.stringify(row)}\n`)) await once(out, "drain");
  written += 1;
}
out.end();
await once(out, "finish");
