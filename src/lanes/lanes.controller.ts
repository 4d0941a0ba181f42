import { Body, Controller, Get, HttpCode, Inject, Param, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { principalOf } from '../auth/authenticate.js';
import { NeedsScope } from '../auth/scopes.js';
import * as documented from './lanes.openapi.js';
import { Lanes } from './lanes.service.js';
import {
  PauseLane,
  ProviderParam,
  ResumeLane,
  type LaneListView,
  type PauseLaneCommand,
  type ResumeLaneCommand,
} from './schemas/lane.schema.js';

/** What operators do with lanes; a lane serves every tenant, so the tenant of the caller does not matter. */
@Controller('/v1/lanes')
@documented.Controller()
export class LanesController {
  constructor(@Inject(Lanes) private readonly lanes: Lanes) {}

  @Get()
  @NeedsScope('lanes:operate')
  @documented.List()
  async listLanes(): Promise<LaneListView> {
    return { data: [...(await this.lanes.list())] };
  }

  @Post(':provider/pause')
  @HttpCode(200)
  @NeedsScope('lanes:operate')
  @documented.Pause()
  async pauseLanes(
    @Req() request: FastifyRequest,
    @Param('provider', { schema: ProviderParam }) provider: string,
    @Body({ schema: PauseLane }) { reason, account }: PauseLaneCommand,
  ): Promise<LaneListView> {
    const of = { provider, account: account ?? null };
    return { data: [...(await this.lanes.pause(of, reason, principalOf(request)))] };
  }

  @Post(':provider/resume')
  @HttpCode(200)
  @NeedsScope('lanes:operate')
  @documented.Resume()
  async resumeLanes(
    @Req() request: FastifyRequest,
    @Param('provider', { schema: ProviderParam }) provider: string,
    @Body({ schema: ResumeLane }) command: ResumeLaneCommand,
  ): Promise<LaneListView> {
    const of = { provider, account: command?.account ?? null };
    return { data: [...(await this.lanes.resume(of, principalOf(request)))] };
  }
}
