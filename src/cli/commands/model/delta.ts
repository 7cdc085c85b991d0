import type { Command } from "commander";
import type { PyDict } from "../../../../packages/python-values/src/value.ts";
import { createRenderer } from "../../../renderer/create-renderer.ts";
import type { Renderer } from "../../../renderer/renderer.ts";
import {
  LineError,
  answerJsonLines,
  dictListMember,
  dictMember,
  toLinesInput,
  toolsMember,
} from "../../json-lines.ts";
import { writeOut } from "../../write-out.ts";

interface DeltaFlags {
  readonly model: string;
  readonly in?: string;
}

/** `turnwright delta`: prints the ids that observations add to the ledger. */
export function defineDelta(command: Command): void {
  command
    .description(
      'Reads lines {"id","messages","environment","lastSampledId"?,"tools"?,"variables"?}, where the ' +
        "messages end with the assistant's turn, and answers each with ids, text and closeSynthesised.",
    )
    .requiredOption("--model <dir>", "a model folder")
    .option("--in <file>", "read from a file instead of standard input")
    .action(delta);
}

async function delta({ model: modelDir, in: file }: DeltaFlags): Promise<void> {
  const plain = await createRenderer({ modelDir });
  const { codec } = plain;
  const renderers = new Map([[keyOf(new Map()), Promise.resolve(plain)]]);
  const rendererFor = (variables: PyDict): Promise<Renderer> => {
    const key = keyOf(variables);
    const known = renderers.get(key) ?? createRenderer({ modelDir, variables, codec });
    renderers.set(key, known);
    return known;
  };
  try {
    process.exitCode = await answerJsonLines(toLinesInput(file), writeOut, async (line) =>
      answer(line, await rendererFor(dictMember(line, "variables"))),
    );
  } finally {
    await codec.close?.();
  }
}

function keyOf(variables: PyDict): string {
  return JSON.stringify([...variables], (_, value: unknown) =>
    typeof value === "bigint" ? `${value}n` : value,
  );
}

async function answer(line: PyDict, renderer: Renderer) {
  const messages = dictListMember(line, "messages");
  const assistant = messages.at(-1);
  if (assistant?.get("role") !== "assistant") {
    throw new LineError("bad-line", '"messages" must end with the turn of role assistant');
  }
  const { ids, text, closeSynthesised, droppedStopId, foreignStopId } = await renderer.delta({
    history: messages.slice(0, -1),
    assistant,
    environment: dictListMember(line, "environment"),
    tools: toolsMember(line),
    lastSampledId: lastSampledId(line),
  });
  return {
    ids,
    text,
    closeSynthesised,
    ...(droppedStopId !== undefined && { droppedStopId }),
    ...(foreignStopId !== undefined && { foreignStopId }),
  };
}

/**
 * Returns the id that ended the turn. If the line names none, the delta includes the end of the turn.
 */
function lastSampledId(line: PyDict): number | undefined {
  const value = line.get("lastSampledId");
  if (value === null || value === undefined) return undefined;
  if (typeof value !== "bigint") {
    throw new LineError("bad-line", '"lastSampledId" must be a whole number');
  }
  return Number(value);
}
