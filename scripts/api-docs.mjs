// Writes docs/api from the declarations of the build: the doc comment and the signature of each
// export. `node scripts/api-docs.mjs [folder]`; packing the package runs it.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript-5";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

/** The entries of the package: the name of the page, the import specifier and the declarations. */
const entries = Object.entries(
  JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")).exports,
)
  .filter(([, { types }]) => types !== undefined)
  .map(([specifier, { types }]) =>
    specifier === "./environments/*"
      ? ["storefront", "turnwright/environments/storefront", types.replace("*", "storefront")]
      : [specifier.slice(2) || "turnwright", path.posix.join("turnwright", specifier), types],
  );

const kinds = ["Functions", "Classes", "Types", "Values"];

/** Writes the pages, and says which exports have no doc comment. */
export function writeApiDocs(folder) {
  const files = entries.map(([, , file]) => path.join(root, file));
  const missing = files.find((file) => !existsSync(file));
  if (missing !== undefined) throw new Error(`Cannot write the reference: ${missing} is not built`);
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    skipLibCheck: true,
    noEmit: true,
  });
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const undocumented = [];
  for (const [page, specifier, file] of entries) {
    const source = program.getSourceFile(path.join(root, file));
    const members = readExports(program.getTypeChecker(), source);
    for (const { name, text } of members)
      if (text === "") undocumented.push(`${specifier} ${name}`);
    writeFileSync(path.join(folder, `${page}.md`), renderPage(specifier, members));
  }
  const list = entries.map(([page, specifier]) => `- [\`${specifier}\`](${page}.md)\n`).join("");
  writeFileSync(
    path.join(folder, "README.md"),
    `# API reference\n\nWritten from the doc comments of what can be imported:\n\n${list}`,
  );
  return undocumented;
}

function readExports(checker, source) {
  const module = checker.getSymbolAtLocation(source);
  return checker
    .getExportsOfModule(module)
    .map((symbol) => {
      const isAlias = (symbol.flags & ts.SymbolFlags.Alias) !== 0;
      const found = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
      const [first] = found.declarations ?? [];
      const parts = found.getDocumentationComment(checker);
      const tags = found.getJsDocTags(checker).map(({ name, text }) => {
        const said = ts.displayPartsToString(text);
        return `- **${name}** ${said.replaceAll(/\s*\n\s*/g, " ")}`;
      });
      const text = [ts.displayPartsToString(parts).trim(), tags.join("\n")];
      return {
        name: symbol.name,
        kind: kindOf(first),
        text: text.filter((part) => part !== "").join("\n\n"),
        code: (found.declarations ?? []).map(codeOf).join("\n"),
      };
    })
    .toSorted((one, other) => one.name.localeCompare(other.name, "en"));
}

function kindOf(node) {
  if (ts.isFunctionDeclaration(node)) return "Functions";
  if (ts.isClassDeclaration(node)) return "Classes";
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return "Types";
  return "Values";
}

/** A declaration without its own doc comment; those of its members stay. */
function codeOf(node) {
  const whole = ts.isVariableDeclaration(node) ? node.parent.parent : node;
  return whole.getText().replace(/^export (?:declare |default )*/, "");
}

function renderPage(specifier, members) {
  const parts = kinds.flatMap((kind) => {
    const those = members.filter((member) => member.kind === kind);
    if (those.length === 0) return [];
    const sections = those.map(
      ({ name, text, code }) => `### ${name}\n\n${text}\n\n\`\`\`ts\n${code}\n\`\`\`\n`,
    );
    return [`## ${kind}\n\n${sections.join("\n")}`];
  });
  return `# \`${specifier}\`\n\n${parts.join("\n")}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = path.resolve(process.argv[2] ?? path.join(root, "docs/api"));
  const undocumented = writeApiDocs(folder);
  for (const name of undocumented) console.error(`${name} has no doc comment`);
  process.exitCode = undocumented.length > 0 ? 1 : 0;
}
