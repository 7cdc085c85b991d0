// Makes one of the library packages below packages/ ready to be packed: `node scripts/build-package.mjs FOLDER`. Each
// entry becomes a file in the package's dist/, with its declarations. Imports of another package's entry become
// imports of its name. The repository's own build, which bundles the same sources into turnwright, comes first.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { build, isStale } from "./build.mjs";
import { nodeInput, packageOutput } from "./bundle.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const packages = path.join(root, "packages");

function readManifest(folder) {
  return JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
}

/** Returns the sources of a package's entries by their import specifiers. */
function entriesOf(folder) {
  const { name, exports = {} } = readManifest(folder);
  const entries = Object.entries(exports).filter(([, entry]) => entry.default !== undefined);
  return entries.map(([subpath, entry]) => ({
    specifier: path.posix.join(name, subpath),
    stem: entry.default.replace(/^\.\/dist\/(.*)\.js$/, "$1"),
  }));
}

/** Returns the import specifiers of all packages' entries by their sources, without the extension. */
function findSpecifiers() {
  const folders = readdirSync(packages).map((name) => path.join(packages, name));
  return new Map(
    folders.flatMap((folder) =>
      entriesOf(folder).map(({ specifier, stem }) => [path.join(folder, "src", stem), specifier]),
    ),
  );
}

/** Bundles the package's entries. What other packages export stays an import. */
async function bundleEntries(folder, specifiers) {
  const sources = path.join(folder, "src") + path.sep;
  const bundle = await rolldown({
    input: Object.fromEntries(
      entriesOf(folder).map(({ stem }) => [stem, `${path.join(sources, stem)}.ts`]),
    ),
    ...nodeInput,
    external: /^(?!\0|@oxc-project\/runtime|\/)[^./]/,
    plugins: [
      {
        name: "packages",
        resolveId(target, importer) {
          if (importer === undefined || !target.startsWith(".")) return null;
          const file = path.resolve(path.dirname(importer), target);
          if (file.startsWith(sources)) return null;
          const id = specifiers.get(file.replace(/\.ts$/, ""));
          if (id === undefined)
            throw new Error(`${importer} imports ${target}, no package's entry`);
          return { id, external: true };
        },
      },
    ],
  });
  await bundle.write({ dir: path.join(folder, "dist"), ...packageOutput });
  await bundle.close();
}

/** Copies the declarations that the entries lead to, as the repository's build has made them. */
function copyDeclarations(folder, specifiers) {
  const built = path.join(root, "dist", path.relative(root, folder), "src");
  const waiting = entriesOf(folder).map(({ stem }) => path.join(built, stem));
  const seen = new Set(waiting);
  for (let stem = waiting.pop(); stem !== undefined; stem = waiting.pop()) {
    const text = readFileSync(`${stem}.d.ts`, "utf8");
    const mapped = text.replaceAll(/(from |import\()"(\.[^"]+)\.ts"/g, (whole, start, target) => {
      const next = path.resolve(path.dirname(stem), target);
      if (!next.startsWith(built + path.sep)) {
        const source = path.join(root, path.relative(path.join(root, "dist"), next));
        const specifier = specifiers.get(source);
        if (specifier === undefined)
          throw new Error(`${stem}.d.ts imports ${target}, no package's entry`);
        return `${start}"${specifier}"`;
      }
      if (!seen.has(next)) waiting.push(next);
      seen.add(next);
      return whole;
    });
    const to = path.join(folder, "dist", `${path.relative(built, stem)}.d.ts`);
    mkdirSync(path.dirname(to), { recursive: true });
    writeFileSync(to, mapped);
  }
}

/** Builds the package in a folder. */
async function buildPackage(folder) {
  const { name, version } = readManifest(folder);
  const expected = readManifest(root).version;
  if (version !== expected) {
    throw new Error(
      `Cannot build ${name}: its version is ${version}, expected turnwright's ${expected}`,
    );
  }
  if (isStale()) await build();
  rmSync(path.join(folder, "dist"), { recursive: true, force: true });
  const specifiers = findSpecifiers();
  await bundleEntries(folder, specifiers);
  copyDeclarations(folder, specifiers);
  copyFileSync(path.join(root, "LICENSE"), path.join(folder, "LICENSE"));
}

try {
  await buildPackage(path.resolve(process.argv[2] ?? "."));
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
