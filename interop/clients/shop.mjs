// A customer of the built-in shop, for agents that are separate programs. They read, call and talk over HTTP, and an
// expert decides the sampled turns.
import { createServer } from "node:http";

/**
 * Opens the shop for one task.
 *
 *   GET  /task          {policyText, firstUserText, tools}
 *   POST /tools/NAME    arguments → {observation, isError}
 *   POST /say           {text} → {text}; null if the conversation is over
 */
export async function openShop(index) {
  const shop = (file) => import(`../../dist/environments/storefront/${file}.js`);
  const { createStorefront } = await shop("storefront");
  const { createStorefrontUser } = await shop("storefront-user");
  const { createStorefrontExpert, toTurnText } = await shop("storefront-expert");
  const { stringifyPythonJson } =
    await import("../../dist/packages/python-values/src/json/json-stringify.js");
  const { toPlainJson, toPyValue } = await import("../../dist/packages/python-values/src/value.js");
  const storefront = createStorefront();
  const task = storefront.task("test", index);
  const { signal } = new AbortController();
  const user = createStorefrontUser().open(task, { seed: index });
  const world = await storefront.open(task, { user, signal });
  const expert = createStorefrontExpert({ seed: 7 });
  const firstUserText = await world.begin({ signal });
  const messages = [{ role: "user", content: firstUserText }];
  const counts = { calls: 0, says: 0 };
  let isOver = false;

  const call = async (name, given) => {
    const arguments_ = toPyValue(given);
    const step = await world.step({ type: "call", name, arguments: arguments_ }, { signal });
    const id = `call-${counts.calls++}`;
    const argumentsText = stringifyPythonJson(arguments_, { ensureAscii: false });
    messages.push(
      { role: "assistant", content: "", toolCalls: [{ id, name, argumentsText }] },
      { role: "tool", content: step.observation, toolCallId: id, name },
    );
    return { observation: step.observation, isError: step.isError === true };
  };
  const say = async (content) => {
    const step = await world.step({ type: "say", content }, { signal });
    counts.says += 1;
    messages.push({ role: "assistant", content }, { role: "user", content: step.observation });
    isOver = step.done !== undefined;
    return isOver ? null : step.observation;
  };
  const tools = storefront.tools.map(({ openai }) => toPlainJson(openai));
  const answer = async (path, body) => {
    if (path === "/task") return { policyText: storefront.policyText, firstUserText, tools };
    if (path === "/say") return { text: await say(body.text) };
    return await call(path.slice("/tools/".length), body);
  };
  const serve = async (request, response) => {
    try {
      let text = "";
      for await (const chunk of request.setEncoding("utf8")) text += chunk;
      const reply = await answer(request.url, text === "" ? {} : JSON.parse(text));
      response.setHeader("content-type", "application/json").end(JSON.stringify(reply));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    firstUserText,
    policyText: storefront.policyText,
    counts,
    say,
    toolNames: tools.map(({ function: { name } }) => name),
    get isOver() {
      return isOver;
    },
    /** Returns the expert's next turn, with the given names of the tools. */
    nextTurn(nameOf) {
      const { action } = expert.act(messages);
      return toTurnText(action.type === "call" ? { ...action, name: nameOf(action.name) } : action);
    },
    async close() {
      const { reward } = await world.score({ signal });
      await world[Symbol.asyncDispose]();
      server.close();
      return reward;
    },
  };
}
