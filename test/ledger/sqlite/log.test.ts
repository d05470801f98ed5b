import { eventLogContract } from "../../contracts/event-log.ts";
import { eventLogModel } from "../../contracts/event-log-model.ts";
import { sqliteHarness } from "./rig.ts";

eventLogContract("sqlite", sqliteHarness);
eventLogModel("sqlite", sqliteHarness);
