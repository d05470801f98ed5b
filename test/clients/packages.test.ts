import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "../..");
const exec = promisify(execFile);
const offline = {
  ...process.env,
  npm_config_offline: "true",
  npm_config_update_notifier: "false",
};

/** What npm installs with our packages: their required peers, and what these need. */
const required = [
  "@bufbuild/protobuf",
  "@connectrpc/connect",
  "@graphql-typed-document-node/core",
  "graphql",
];

/** What the program needs besides. All of these are linked, since packing them takes long. */
const linked = ["@connectrpc/connect-node", "@types/node", "@types/react", "react", "urql"];

const program = `
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createPaymentsGateway, credentials, failureOf, watchPayment } from "@payments-gateway/client";
import { signCallback, verifyCallback } from "@payments-gateway/client/webhook";
import { PayDocument, type PayMutationVariables } from "@payments-gateway/graphql";
import { apolloCache, graphcacheKeys, relayDataId } from "@payments-gateway/graphql/cache";
import { type PayResult, usePay } from "@payments-gateway/graphql/hooks";
import { watchPayment as watchInBrowser } from "@payments-gateway/graphql/watch-payment";

const interceptors = [credentials({ token: "key" })];
const gateway = createPaymentsGateway(
  createGrpcTransport({ baseUrl: "http://127.0.0.1:1", interceptors }),
);
// @ts-expect-error The types are more than any.
credentials({ token: 1 });
const body = Buffer.from("{}");
const input: PayMutationVariables["input"] | undefined = undefined;
export type Results = PayResult["__typename"];
console.log(
  typeof gateway.payments.createPayment,
  failureOf(new Error("mine")).kind,
  verifyCallback(body, signCallback(body, "password"), "password"),
  [watchPayment, usePay, watchInBrowser].every((one) => typeof one === "function"),
  PayDocument.kind,
  apolloCache.typePolicies.Payment.keyFields[0],
  graphcacheKeys.PaymentSnapshot?.({}),
  relayDataId({ externalId: "order-1" }, "Payment"),
  input,
);
`;

describe("the client packages in an empty project", () => {
  let project: string;
  before(async () => {
    project = await mkdtemp(join(tmpdir(), "packages-"));
    const ours = ["./clients/typescript", "./clients/graphql"];
    await npm(root, "pack", "--ignore-scripts", "--pack-destination", project, ...ours);
    const packages = (await readdir(project)).map((file) => `./${file}`);
    for (const name of required) packages.push(join(root, "node_modules", name));
    await writeFile(join(project, "package.json"), '{"private": true, "type": "module"}');
    await writeFile(join(project, "program.ts"), program);
    // Refuses peers outside of the ranges that our packages say.
    await npm(
      project,
      "install",
      "--strict-peer-deps",
      "--ignore-scripts",
      "--no-audit",
      ...packages,
    );
    for (const name of linked) {
      await mkdir(dirname(join(project, "node_modules", name)), { recursive: true });
      await symlink(join(root, "node_modules", name), join(project, "node_modules", name));
    }
  });
  after(() => rm(project, { recursive: true }));

  it("run", async () => {
    const { stdout } = await exec(process.execPath, ["program.ts"], { cwd: project });
    assert.equal(
      stdout,
      "function other true true Document externalId null Payment:order-1 undefined\n",
    );
  });

  for (const resolution of ["nodenext", "bundler"]) {
    it(`have types that hold under strict (${resolution})`, async () => {
      await compile(resolution, "program.ts");
    });
  }

  it("hold their schema and documents", async () => {
    const { resolve } = createRequire(join(project, "program.ts"));
    for (const name of ["schema.graphql", "documents/payment.graphql"]) {
      assert.ok(existsSync(resolve(`@payments-gateway/graphql/${name}`)), name);
    }
  });

  /** Checks our packages' declarations, too, and without the settings that our sources need. */
  async function compile(moduleResolution: string, file: string): Promise<void> {
    const module = moduleResolution === "nodenext" ? "nodenext" : "esnext";
    await exec(
      join(root, "node_modules/.bin/tsc"),
      [
        ...["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess"],
        ...["--checkers", "1", "--noEmit"],
        ...["--target", "es2022", "--lib", "es2023,dom,dom.iterable"],
        ...["--types", "node", "--module", module, "--moduleResolution", moduleResolution, file],
        // Declarations of packages are the same by both resolutions: they are checked by one.
        ...(moduleResolution === "bundler" ? ["--skipLibCheck"] : []),
      ],
      { cwd: project, env: { ...process.env, GOGC: "400" } },
    ).catch(({ stdout }) => {
      throw new Error(stdout);
    });
  }
});

async function npm(cwd: string, ...args: string[]): Promise<void> {
  await exec("npm", ["--loglevel", "error", "--no-fund", ...args], { cwd, env: offline });
}
