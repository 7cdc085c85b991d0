import ts from "typescript-5";

/**
 * The types that the declarations of entry files mention and none of them exports, each with one of
 * its users. A caller can receive such a type and cannot name it.
 */
export function findUnexportedTypes(entries: readonly string[]): readonly string[] {
  const program = ts.createProgram([...entries], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
    types: ["node"],
    noEmit: true,
  });
  const checker = program.getTypeChecker();
  const resolve = (symbol: ts.Symbol): ts.Symbol =>
    (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
  const modules = entries.map((entry) =>
    checker.getSymbolAtLocation(program.getSourceFile(entry)!)!,
  );
  const exported = new Set(
    modules.flatMap((module) => checker.getExportsOfModule(module).map(resolve)),
  );
  const missing = new Map<string, string>();
  for (const symbol of exported) {
    for (const declaration of symbol.declarations ?? []) visit(declaration, symbol.name);
  }
  return Array.from(missing, ([name, user]) => `${name} (in ${user})`);

  function visit(node: ts.Node, user: string): void {
    if (isHidden(node)) return;
    const name = ts.isTypeReferenceNode(node)
      ? node.typeName
      : ts.isExpressionWithTypeArguments(node)
        ? node.expression
        : undefined;
    if (name !== undefined) {
      const found = checker.getSymbolAtLocation(name);
      if (found !== undefined) note(resolve(found), user);
    }
    ts.forEachChild(node, (child) => visit(child, user));
  }

  function note(symbol: ts.Symbol, user: string): void {
    const isParameter = (symbol.flags & ts.SymbolFlags.TypeParameter) !== 0;
    const file = symbol.declarations?.[0]?.getSourceFile().fileName ?? "";
    if (isParameter || exported.has(symbol) || !file.includes("/dist/")) return;
    missing.set(`${symbol.name} of ${file.slice(file.indexOf("/dist/") + 6)}`, user);
  }
}

/** True for private members, which callers cannot use. */
function isHidden(node: ts.Node): boolean {
  return (
    ts.canHaveModifiers(node) &&
    (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)
  );
}
