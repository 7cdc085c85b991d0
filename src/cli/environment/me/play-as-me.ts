import type {
  Action,
  AgentTurn,
  Environment,
  Score,
  Step,
} from "../../../environment/environment.ts";
import { differenceOf } from "../../../environment/state/difference.ts";
import { stringifyPythonJson } from "../../../../packages/python-values/src/json/json-stringify.ts";
import type { JudgedWorld } from "../../../episode/judged-world.ts";
import { openJudgedWorld } from "../open-judged-world.ts";
import type { ToolDefinition } from "../../../message.ts";
import { describeDifference } from "../../../report/describe-difference.ts";
import { indented, printable, type TextStyle } from "../../../report/text-style.ts";
import type { Task } from "../../../task.ts";
import type { User } from "../../../user/user.ts";
import type { AgentTerminal } from "./agent-terminal.ts";
import { listTools, showTool } from "./describe-tools.ts";
import { agentCommands, readAgentLine, type AgentLine } from "./read-agent-line.ts";

/** The parts of a conversation in which a person plays the agent. */
export interface MyConversation {
  readonly environment: Environment;
  readonly task: Task;
  readonly user: User;
  readonly seed: number;
  readonly style: TextStyle;
  /** Opens the input of the person. `words` are completed at the start of a line. */
  readonly openTerminal: (words: readonly string[]) => AgentTerminal;
  readonly print: (text: string) => void;
}

/**
 * Lets a person play one task as the agent: shows the policy, the tools and the user's line, performs what the person
 * writes, and shows the score at the end.
 *
 * @throws RolloutError if the user or the environment fails.
 */
export async function playAsMe(conversation: MyConversation): Promise<void> {
  const { environment, task, user, seed } = conversation;
  const { signal } = new AbortController();
  await using world = await openJudgedWorld({ environment, task, user, seed, signal });
  await new MyEpisode(conversation, world).play();
}

class MyEpisode {
  readonly #conversation: MyConversation;
  readonly #world: JudgedWorld;
  readonly #tools: readonly ToolDefinition[];
  #turnCount = 0;

  constructor(conversation: MyConversation, world: JudgedWorld) {
    this.#conversation = conversation;
    this.#world = world;
    this.#tools = world.world.tools ?? conversation.environment.tools;
  }

  async play(): Promise<void> {
    const { environment, openTerminal, style, task } = this.#conversation;
    const opening = await this.#world.begin();
    this.#section(`task ${task.index} of ${environment.name}, ${task.split}`, task.id);
    this.#show("policy");
    this.#show("tools");
    this.#section("user", opening);
    this.#print(style.faint(`\n${howTo}\n`));
    const commands = Object.keys(agentCommands).map((command) => command.split(" ")[0]!);
    using terminal = openTerminal([...this.#tools.map(({ name }) => name), ...commands]);
    await this.#score(await this.#playTurns(terminal));
  }

  /** Returns the reason why the conversation is over. */
  async #playTurns(terminal: AgentTerminal): Promise<string> {
    for (;;) {
      const text = await terminal.next();
      if (text === null) return "you left";
      const line = readAgentLine(text, this.#tools);
      if (line.type === "quit") return "you left";
      if (line.type !== "act") {
        this.#answer(line);
        continue;
      }
      const step = await this.#perform(line.action);
      const { done, from, isError, observation, source } = step;
      if (observation !== "" || from === "tool") {
        const verdict = isError === true ? this.#conversation.style.warning("  error") : "";
        this.#section(`${source}${verdict}`, observation);
      }
      if (done !== undefined) return endings[done];
    }
  }

  /** Answers a line that the environment does not get. */
  #answer(line: Exclude<AgentLine, { readonly type: "act" | "quit" }>): void {
    const { style } = this.#conversation;
    switch (line.type) {
      case "show":
        return this.#show(line.what);
      case "show-tool":
        return this.#section(line.tool.name, showTool(line.tool));
      case "mistake":
        return this.#print(`${style.warning(printable(`Not sent: ${line.why}`))}\n`);
      case "empty":
    }
  }

  #show(what: "help" | "tools" | "policy"): void {
    const { policyText = this.#conversation.environment.policyText } = this.#world.world;
    switch (what) {
      case "policy":
        return this.#section("policy", policyText.trim() === "" ? "(none)" : policyText);
      case "tools":
        return this.#section("tools", listTools(this.#tools));
      case "help": {
        const rows = Object.entries(agentCommands).map(
          ([command, help]) => `${command.padEnd(12)}${help}`,
        );
        return this.#section("commands", `${howTo}\n${rows.join("\n")}`);
      }
    }
  }

  async #perform(action: Action): Promise<Step> {
    return await this.#world.step(action, toTurn(action, this.#turnCount++));
  }

  async #score(why: string): Promise<void> {
    const { style } = this.#conversation;
    const score = await this.#world.score();
    const reward = score.reward === null ? "none: nothing scored it" : String(score.reward);
    this.#print(`\n${style.heading(`The conversation is over: ${why}. Reward ${reward}`)}\n`);
    for (const line of describeScore(score)) this.#print(`${indented(printable(line))}\n`);
  }

  #section(heading: string, text: string): void {
    const { style } = this.#conversation;
    this.#print(`\n${style.heading(printable(heading))}\n${indented(printable(text))}\n`);
  }

  #print(text: string): void {
    this.#conversation.print(text);
  }
}

const howTo =
  'You are the agent. Write to the user, or call a tool: name {"key": "value"} or name key=value. /help shows more.';

const endings: Readonly<Record<NonNullable<Step["done"]>, string>> = {
  "user-left": "the user left",
  "terminal-tool": "a tool ended it",
  finished: "the environment ended it",
};

/** Returns the turn of a person's action, as a world sees a model's. */
function toTurn(action: Action, turnIndex: number): AgentTurn {
  const callId = `call_${turnIndex}`;
  const actions = [{ callId, action }];
  if (action.type === "say") {
    const message = { role: "assistant", content: action.content } as const;
    return { message, finish: "stop", actions };
  }
  const argumentsText = stringifyPythonJson(action.arguments);
  const toolCalls = [{ id: callId, name: action.name, argumentsText }];
  return { message: { role: "assistant", content: "", toolCalls }, finish: "stop", actions };
}

/** Describes a score line by line: the verdict, its parts, and what differs from what was wanted. */
function describeScore({ success, components = {}, turnRewards, details }: Score): string[] {
  const { difference, ...rest } = details;
  const differing = differenceOf(details);
  const lines = differing === undefined ? [] : describeDifference(differing);
  const isExact = differing !== undefined && lines.length === 0;
  const known = differing === undefined && difference !== undefined ? details : rest;
  return [
    ...(success === undefined ? [] : [`success: ${success ? "yes" : "no"}`]),
    ...Object.entries(components).map(
      ([name, { value, weight }]) => `${name}: ${value}, weight ${weight}`,
    ),
    ...(turnRewards === undefined ? [] : [`by turn: ${turnRewards.join(", ")}`]),
    ...(isExact ? ["nothing differs from what was wanted"] : lines),
    ...(Object.keys(known).length === 0 ? [] : JSON.stringify(known, undefined, 2).split("\n")),
  ];
}
