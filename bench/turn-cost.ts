import type { Message, ToolDefinition } from "../src/message.ts";
import {
  compileChatTemplate,
  type ChatTemplate,
} from "../packages/chat-template/src/chat-template.ts";
import { createRenderer } from "../src/renderer/create-renderer.ts";
import { toTemplateMessage, toTemplateTools } from "../src/renderer/openai-messages.ts";
import type { Renderer } from "../src/renderer/renderer.ts";
import { readModelFolder } from "../src/tokenizer/model-folder.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { qwen3Folder, sixteenTools } from "./bench-model.ts";
import { cpuMs, median } from "./cpu-time.ts";

/** Turn counts of the measurement. */
const turnCounts = [10, 30, 100];
const repetitions = 3;

/**
 * Measures the CPU per turn of an episode's token work: the ledger with one delta a turn, compared with
 * rendering and encoding the complete history for each prompt.
 */
export async function benchTurnCost(): Promise<BenchFigure[]> {
  const model = await loadModel();
  const tools = sixteenTools();
  await playLedger(model, tools, conversation(3));
  await playWhole(model, tools, conversation(3));
  const figures: BenchFigure[] = [];
  for (const turnCount of turnCounts) {
    const turns = conversation(turnCount);
    const ledger: number[] = [];
    const whole: number[] = [];
    for (let repetition = 0; repetition < repetitions; repetition++) {
      ledger.push((await cpuMs(() => playLedger(model, tools, turns))) / turnCount);
      whole.push((await cpuMs(() => playWhole(model, tools, turns))) / turnCount);
    }
    const [value, baseline] = [median(ledger), median(whole)];
    figures.push({
      bench: "turn-cost",
      figure: "CPU per turn, against rendering and encoding the whole history",
      value,
      unit: "ms",
      baseline,
      ratio: baseline / value,
      at: turnCount,
    });
  }
  return figures;
}

interface BenchModel {
  readonly renderer: Renderer;
  readonly template: ChatTemplate;
}

async function loadModel(): Promise<BenchModel> {
  const modelDir = qwen3Folder();
  const { chatTemplate } = await readModelFolder(modelDir);
  return {
    renderer: await createRenderer({ modelDir }),
    template: compileChatTemplate(chatTemplate ?? ""),
  };
}

interface BenchTurn {
  readonly assistant: Message;
  readonly environment: readonly Message[];
}

const opening: readonly Message[] = [
  { role: "system", content: "You help the customers of a shop. ".repeat(150) },
  { role: "user", content: "Hi, I want to exchange two of the things that I ordered last week." },
];

/** Turns similar to τ-bench's: three tool calls, then a question to the user. */
function conversation(turnCount: number): readonly BenchTurn[] {
  return Array.from({ length: turnCount }, (_, index) => {
    if (index % 4 === 3) {
      return {
        assistant: { role: "assistant", content: `Shall I go on with step ${index}?` },
        environment: [{ role: "user", content: `Yes, please go on with step ${index}.` }],
      };
    }
    const id = `call${String(index).padStart(5, "0")}`;
    const name = `shop_tool_${index % 16}`;
    const record = {
      order_id: `#W${index}`,
      items: Array.from({ length: 6 }, (_item, item) => ({
        item,
        price: 12.5 * index,
        options: { colour: "blue", size: "M" },
      })),
    };
    return {
      assistant: {
        role: "assistant",
        content: "",
        toolCalls: [{ id, name, argumentsText: `{"order_id": "#W${index}"}` }],
      },
      environment: [{ role: "tool", content: JSON.stringify(record), toolCallId: id, name }],
    };
  });
}

async function playLedger(
  { renderer }: BenchModel,
  tools: readonly ToolDefinition[],
  turns: readonly BenchTurn[],
): Promise<void> {
  const messages = [...opening];
  const ids = [...(await renderer.prompt({ messages, tools })).ids];
  for (const { assistant, environment } of turns) {
    const delta = await renderer.delta({
      history: messages,
      assistant,
      environment,
      tools,
      lastSampledId: renderer.stopTokenIds[0],
    });
    for (const id of delta.ids) ids.push(id);
    messages.push(assistant, ...environment);
  }
}

async function playWhole(
  { renderer, template }: BenchModel,
  tools: readonly ToolDefinition[],
  turns: readonly BenchTurn[],
): Promise<void> {
  const messages = [...opening];
  for (const { assistant, environment } of turns) {
    const text = template.render({
      messages: messages.map(toTemplateMessage),
      tools: toTemplateTools(tools),
      addGenerationPrompt: true,
      variables: new Map(),
    });
    await renderer.codec.encode(text);
    messages.push(assistant, ...environment);
  }
}
