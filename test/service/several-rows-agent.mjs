/**
 * An agent of its own whose attempts have one to five rows: it talks to the customer, compacts its
 * history, and starts sub-agents that sample at the same time. Its key decides how many.
 */
import { createHash } from "node:crypto";

const maxTurns = 8;

export async function run(run) {
  const [dice] = createHash("sha256").update(run.apiKey).digest();
  const subagentCount = dice % 4;
  let compacts = dice % 2 === 0;
  const system = { role: "system", content: run.policyText };
  let messages = [system, { role: "user", content: run.firstUserText }];
  for (let turn = 0; turn < maxTurns; turn++) {
    const message = await ask(run, messages, { "x-session-id": "main" });
    messages.push(message);
    if (turn === 0) await startSubagents(run, subagentCount);
    const calls = message.tool_calls ?? [];
    for (const { id, function: called } of calls) {
      const tool = run.tools.find(({ name }) => name === called.name);
      const content = await tool.execute(JSON.parse(called.arguments));
      messages.push({ role: "tool", tool_call_id: id, content });
    }
    if (calls.length > 0) continue;
    const answer = await run.say(message.content ?? "");
    if (answer === undefined) return;
    messages.push({ role: "user", content: answer });
    if (!compacts) continue;
    compacts = false;
    messages = [system, await compact(run, messages, answer)];
  }
}

async function startSubagents(run, count) {
  const look = async (_, index) =>
    await ask(run, [{ role: "user", content: `Look for part ${index} of: ${run.firstUserText}` }], {
      "x-session-id": `part-${index}`,
      "x-parent-session-id": "main",
    });
  await Promise.all(Array.from({ length: count }, look));
}

/** Returns the message with which the compacted conversation continues. */
async function compact(run, messages, answer) {
  const order = "Summarise the conversation so far, so that another one can continue from it.";
  const asked = [...messages, { role: "user", content: order }];
  const { content } = await ask(run, asked, { "x-session-id": "main" });
  return { role: "user", content: `The conversation so far: ${content ?? ""}\n${answer}` };
}

async function ask({ fetch, baseUrl, apiKey, tools, signal }, messages, headers) {
  const body = {
    model: "policy",
    messages,
    max_tokens: 64,
    tools: tools.map(({ name, description, parameters }) => ({
      type: "function",
      function: { name, description, parameters },
    })),
  };
  const reply = await fetch(`${baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  if (!reply.ok) throw new Error(await reply.text());
  const { choices } = await reply.json();
  return choices[0].message;
}
