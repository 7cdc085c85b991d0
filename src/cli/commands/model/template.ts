import type { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import type { CapabilityCard } from "../../../renderer/capability/capability-card.ts";
import {
  readTemplateChoices,
  rendererSettings,
} from "../../../composition/config/renderer-config.ts";
import { completeSettings } from "../../../composition/config/setting.ts";
import { addSettings, givenSettings } from "../../option.ts";
import { writeError, writeOut } from "../../write-out.ts";

interface TemplateFlags extends Readonly<Record<string, unknown>> {
  readonly template?: string;
  readonly model?: string;
}

/**
 * The settings of a rollout that affect the card. The command has its own flags for the model
 * folder.
 */
const cardSettings = rendererSettings.filter(({ name }) => name !== "model" && name !== "guard");

/** `turnwright template`: prints the capability card of a chat template. */
export function defineTemplate(command: Command): void {
  command
    .description(
      "Prints one JSON object: what was measured of the template and its tokenizer. " +
        "Settings are put in the place of what was found, as they are for a rollout.",
    )
    .option("--template <file>", "a chat template")
    .option("--model <dir>", "a model folder");
  addSettings(command, cardSettings).action(printCard);
}

async function printCard({ model, template, ...flags }: TemplateFlags): Promise<void> {
  const given = await givenSettings(cardSettings, flags);
  const choices = readTemplateChoices(completeSettings(rendererSettings, given));
  if (model !== undefined) {
    const { createRenderer } = await import("../../../renderer/create-renderer.ts");
    const { card, codec } = await createRenderer({ modelDir: model, ...choices });
    await codec.close?.();
    await writeCard(card);
  } else if (template !== undefined) {
    const { stopTokens, deltaBase, ...others } = choices;
    if (stopTokens !== undefined || deltaBase !== undefined) {
      throw new UsageError("Cannot use --stop-token or --delta-base without --model DIR");
    }
    const { createTemplateRenderer } =
      await import("../../../renderer/create-template-renderer.ts");
    await writeCard((await createTemplateRenderer({ templateFile: template, ...others })).card());
  } else {
    throw new UsageError("Missing --template FILE or --model DIR");
  }
}

/** Prints a card. Sets the exit status 1 if no agent can play with the template. */
async function writeCard(card: CapabilityCard): Promise<void> {
  await writeOut(`${JSON.stringify(card, null, process.stdout.isTTY ? 2 : 0)}\n`);
  const { whyUnplayable } = await import("../../../renderer/capability/why-unplayable.ts");
  const why = whyUnplayable(card);
  if (why === undefined) return;
  writeError(`turnwright: Cannot play with the chat template of ${card.source}: ${why}\n`);
  process.exitCode = 1;
}
