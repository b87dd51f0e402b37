// The model of scenarios/bench/random-write.toml in bare C: closed loop at queue depth 32, front end, write buffer of
// 16384 slots with a 50 % threshold, 8 x 8 dies, 8 KiB pages of two units, greedy collection on each die, one event per
// stage, channels with urgencies. See README.md.
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
typedef uint32_t u32; typedef uint64_t u64;
enum{CH=8,DPC=8,D=64,BPD=128,PPB=256,UPP=2,UPB=512,NB=D*BPD,SLOTS=16384,QD=32};
#define TR 60000ull
#define TP 700000ull
#define TE 3500000ull
#define XU 5120ull
static u32 units_log; static const u32 units_phys=(u32)NB*UPB;
static u32*l2p,*p2l; static u64*vbits; static uint16_t valid[NB]; static u32 nxt[NB],prv[NB]; static uint8_t inidx[NB];
static u32 head[D][UPB+1],tail_[D][UPB+1]; static u64 occ[D][9];
static u32 freeq[D][BPD]; static int fh[D],fn_[D];
static int open_blk[D]; static int open_pg[D];
static int victim[D],vpg[D]; static u32 staged[D][8]; static int ns[D]; static int emptied[D][4]; static int ne[D];
// buffer: slot number is kept in the map entry while buffered (bit 31); the slot keeps the old address
#define BUF 0x80000000u
#define NONE 0x7fffffffu
static struct{u32 lpn,old; uint8_t st;}slot[SLOTS]; // st 1 queued 2 programming 3 programming and overwritten
static u32 fslots[SLOTS]; static int nfs; static u32 wq[SLOTS]; static u32 wqh,wqt;
static u32 waiting[QD]; static int wh,wn;
// dies
enum{IDLE,ARR,WAIT,XFER};enum{HR,RD,PG,ER};
static struct{uint8_t stage,kind,user;u32 page;u32 nun;u32 src[2];}die[D];
static u64 busy_until[CH]; static uint8_t wake_set[CH]; static u32 cq[CH][3][16]; static int cqh[CH][3],cqn[CH][3];
// lanes
typedef struct{u64 t;u32 seq,e;}Ev; 
enum{L_READ,L_X1,L_X2,L_PROG,L_ER,L_ARR,NL}; static Ev lane[NL][128]; static u32 lh[NL],lt[NL]; static u64 headt[NL+CH]; static u32 seq;
static inline void push(int l,u64 t,u32 e){ if(lh[l]==lt[l]) headt[l]=t; lane[l][lt[l]++&127]=(Ev){t,seq++,e}; }
static u64 ops,user_units,gc_units,done,now_; static u64 rs=88172645463325252ull; static int timed; static u64 nr,np_,nev; static u64 ctl_free,link_free; static u64 to_submit; static u64 lat_sum; static u64 sub_t[QD];
static inline u32 rnd(u32 n){ rs^=rs<<13;rs^=rs>>7;rs^=rs<<17; return (u32)((rs>>32)*(u64)n>>32);}
static void lnk(u32 b){u32 d=b/BPD,v=valid[b];u32 t=tail_[d][v];prv[b]=t;nxt[b]=~0u;if(t==~0u){head[d][v]=b;occ[d][v>>6]|=1ull<<(v&63);}else nxt[t]=b;tail_[d][v]=b;}
static void unl(u32 b){u32 d=b/BPD,v=valid[b];u32 p=prv[b],n=nxt[b];if(p==~0u)head[d][v]=n;else nxt[p]=n;if(n==~0u)tail_[d][v]=p;else prv[n]=p;if(head[d][v]==~0u)occ[d][v>>6]&=~(1ull<<(v&63));}
static inline void inval(u32 u){ vbits[u>>6]&=~(1ull<<(u&63)); u32 b=u/UPB; if(inidx[b]){unl(b);valid[b]--;lnk(b);}else valid[b]--; }
static inline void setv(u32 u){ vbits[u>>6]|=1ull<<(u&63); valid[u/UPB]++; }
static u32 next_req_lpn; static u32 ring_lpn[64]; static u32 rr_;
static void submit(u32 id){ sub_t[id]=now_; if(!timed){push(L_ARR,now_,id);return;} u64 t=(now_>ctl_free?now_:ctl_free)+1000; ctl_free=t; u64 b=t>link_free?t:link_free; link_free=b+1280; push(L_ARR,link_free,id); }
static u32 req_lpn[QD];
static void gen(u32 id){ // look ahead 16 and prefetch
  u32 l=ring_lpn[rr_&15]; req_lpn[id]=l; u32 n=rnd(units_log); ring_lpn[rr_++&15]=n; __builtin_prefetch(&l2p[n],1); }
static int take_in(u32 id){ u32 l=req_lpn[id]; u32 e=l2p[l]; 
  if(e&BUF){ u32 s=e&NONE; if(slot[s].st==1){goto complete;} if(!nfs)return 0; u32 n=fslots[--nfs]; slot[n].lpn=l; slot[n].old=BUF|s; slot[n].st=1; l2p[l]=BUF|n; wq[wqt++&(SLOTS-1)]=n; goto complete; }
  if(!nfs)return 0; u32 n=fslots[--nfs]; slot[n].lpn=l; slot[n].old=e; slot[n].st=1; l2p[l]=BUF|n; wq[wqt++&(SLOTS-1)]=n;
complete: done++; lat_sum+=now_-sub_t[id]; if(to_submit){to_submit--; gen(id); submit(id);} return 1; }
static u32 idle_lo; static u64 idlem; static int cursor; static int pump(int d);
static inline int wants(){return (int)(wqt-wqh)>=SLOTS/2;}
static void pump_idle(){ while(idlem&&wants()){ u64 m=idlem>>cursor<<cursor; int any=0; u64 mm=m; for(int k=0;k<2&&wants();k++){ while(mm&&wants()){int d=__builtin_ctzll(mm); mm&=mm-1; if(pump(d)){cursor=(d+1)&63;any=1;} } mm=idlem&((1ull<<cursor)-1);} if(!any)return; } }
static void start_xfer(u64 t,int d){ int c=d/DPC; u64 span=XU*die[d].nun; busy_until[c]=t+span; die[d].stage=XFER; if(die[d].kind==PG)push(L_PROG,t+span+TP,d); else push(die[d].nun==1?L_X1:L_X2,t+span,d); }
static void want(u64 t,int d,int urg){ int c=d/DPC; if(t>=busy_until[c]&&!wake_set[c]){start_xfer(t,d);return;} die[d].stage=WAIT; cq[c][urg][(cqh[c][urg]+cqn[c][urg]++)&15]=d; if(!wake_set[c]){wake_set[c]=1;headt[NL+c]=busy_until[c];} }
static u32 alloc(int d){ if(open_blk[d]<0||open_pg[d]==PPB){ if(!fn_[d])return ~0u; int b=freeq[d][fh[d]&127];fh[d]++;fn_[d]--;open_blk[d]=b;open_pg[d]=0;} return (u32)open_blk[d]*PPB+open_pg[d]++; }
static u64 pend[1]; static u32 outq[128]; static u32 oh,ot;
static void start(int d,int kind){ ops++; if(!timed){ outq[ot++&127]=d; die[d].stage=ARR; return;} if(kind==PG)want(now_,d,2); else if(kind==RD){die[d].stage=ARR;push(L_READ,now_+TR,d);} else {die[d].stage=ARR;push(L_ER,now_+TE,d);} }
static int gc_step(int d){
  if(fn_[d]>2&&victim[d]<0&&!ne[d])return 0;
  for(;;){
    for(int i=0;i<ne[d];i++){int b=emptied[d][i]; if(!valid[b]){ emptied[d][i]=emptied[d][--ne[d]]; int k=0; for(int j=0;j<ns[d];j++) if(staged[d][j]/UPB!=(u32)b) staged[d][k++]=staged[d][j]; ns[d]=k; die[d].kind=ER;die[d].page=b; start(d,ER);return 1;}}
    if(ns[d]>=2){ int k=0; for(int j=0;j<ns[d];j++){u32 u=staged[d][j]; if(vbits[u>>6]>>(u&63)&1) staged[d][k++]=u;} ns[d]=k;
      if(k>=2){ u32 p=alloc(d); if(p!=~0u){ die[d].kind=PG;die[d].user=0;die[d].page=p;die[d].nun=2; for(int j=0;j<2;j++){die[d].src[j]=staged[d][j]; p2l[p*2+j]=p2l[staged[d][j]];} for(int j=2;j<k;j++)staged[d][j-2]=staged[d][j]; ns[d]=k-2; gc_units+=2; start(d,PG);return 1;} } }
    if(victim[d]>=0){ int b=victim[d]; for(;vpg[d]<PPB;){ if((vpg[d]&15)==0){ u32 f=((u32)b*PPB+vpg[d])*2; for(int j=0;j<32;j++) if(vbits[(f+j)>>6]>>((f+j)&63)&1) __builtin_prefetch(&l2p[p2l[f+j]],1);} u32 u=((u32)b*PPB+vpg[d])*2; int v=__builtin_popcountll(vbits[u>>6]>>(u&63)&3); vpg[d]++; if(v){ die[d].kind=RD;die[d].page=u/2;die[d].nun=v; start(d,RD);return 1;} } emptied[d][ne[d]++]=b; victim[d]=-1; continue; }
    if(fn_[d]>2) return 0;
    int f=-1; for(int w=0;w<9;w++) if(occ[d][w]){f=w*64+__builtin_ctzll(occ[d][w]);break;} if(f<0||f>=UPB||ne[d]>=3)return 0; u32 b=head[d][f]; unl(b); inidx[b]=0; victim[d]=b; vpg[d]=0; }
}
static int write_page(int d){ if(fn_[d]<2&&(open_blk[d]<0||open_pg[d]==PPB))return 0; if(victim[d]>=0){ int need=(valid[victim[d]]+1)/2; int left=PPB-open_pg[d]+fn_[d]*PPB; if(left<=need)return 0; } if((int)(wqt-wqh)<2)return 0;
  u32 p=alloc(d); if(p==~0u)return 0; die[d].kind=PG;die[d].user=1;die[d].page=p;die[d].nun=2; for(int j=0;j<2;j++){u32 s=wq[wqh++&(SLOTS-1)]; slot[s].st=2; die[d].src[j]=s; p2l[p*2+j]=slot[s].lpn; __builtin_prefetch(&l2p[slot[s].lpn],1); u32 o=slot[s].old; if(!(o&BUF)){__builtin_prefetch(&vbits[o>>6],1);__builtin_prefetch(&valid[o/UPB],1);} } user_units+=2; start(d,PG); return 1; }
static int pump(int d){ if(die[d].stage!=IDLE)return 0; int urgent=fn_[d]<=1; int r=(urgent&&gc_step(d))||(wants()&&write_page(d))||(!urgent&&gc_step(d)); if(r)idlem&=~(1ull<<d); else idlem|=1ull<<d; return r; }
static void page_ended(u32 p){ u32 b=p/PPB; int d=b/BPD; if((int)b==open_blk[d]&&open_pg[d]<PPB)return; inidx[b]=1; lnk(b); if((int)b==open_blk[d])open_blk[d]=-1; }
static void ended(int d){ int k=die[d].kind; u32 p=die[d].page; die[d].stage=IDLE;
  if(k==RD){ nr++; u64 w=vbits[p*2>>6]>>(p*2&63); for(int j=0;j<2;j++) if(w>>j&1) staged[d][ns[d]++]=p*2+j; }
  else if(k==ER){ freeq[d][(fh[d]+fn_[d]++)&127]=p; }
  else if(die[d].user){ np_++; for(int j=0;j<2;j++){ u32 s=die[d].src[j],l=slot[s].lpn,u=p*2+j; 
       u32 o=slot[s].old; if(o&BUF){ /* older version was in flight: it has been settled into its own slot chain */ o=slot[o&NONE].old; }
       if(o!=NONE) inval(o); setv(u);
       u32 e=l2p[l]; if(e==(BUF|s)) l2p[l]=u; else { slot[e&NONE].old=u; } fslots[nfs++]=s; }
     page_ended(p); while(wn&&nfs){ if(!take_in(waiting[wh&31]))break; wh++;wn--; } }
  else { np_++; for(int j=0;j<2;j++){ u32 from=die[d].src[j],u=p*2+j; if(!(vbits[from>>6]>>(from&63)&1)) continue; u32 l=p2l[u]; u32 e=l2p[l]; if(e&BUF)slot[e&NONE].old=u; else l2p[l]=u; inval(from); setv(u);} page_ended(p); }
  pump(d); pump_idle(); }
int main(int c,char**v){ double opp=c>1?atof(v[1]):28; u64 n=c>2?strtoull(v[2],0,10):5000000; units_log=(u32)(units_phys/(1+opp/100)); 
  l2p=malloc(4ull*units_log+64);p2l=malloc(4ull*units_phys+64);vbits=calloc(units_phys/64+2,8); for(u32 i=0;i<units_log;i++)l2p[i]=NONE; memset(head,255,sizeof head);memset(tail_,255,sizeof tail_);
  for(int d=0;d<D;d++){open_blk[d]=-1;victim[d]=-1;for(int b=0;b<BPD;b++)freeq[d][b]=d*BPD+b;fn_[d]=BPD;} for(int i=0;i<SLOTS;i++)fslots[nfs++]=SLOTS-1-i; idlem=~0ull; for(int i=0;i<NL+CH;i++)headt[i]=~0ull;
  for(int i=0;i<16;i++)ring_lpn[i]=rnd(units_log);
  for(int phase=0;phase<2;phase++){ timed=phase; u64 target=phase?n:(u64)units_log*6; done=0; to_submit=target-QD; now_=now_; u64 o0=ops,u0=user_units,g0=gc_units,t0=now_; lat_sum=0; nev=0; ctl_free=link_free=now_;
    for(int i=0;i<QD;i++){gen(i);submit(i);}
    struct timespec a,b; clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&a);
    while(done<target){ 
      if(oh!=ot){ ended(outq[oh++&127]); continue; }
      int m=0; u64 t=headt[0]; for(int i=1;i<NL+CH;i++) if(headt[i]<t){t=headt[i];m=i;}
      if(t==~0ull){ fprintf(stderr,"stuck %llu\n",(unsigned long long)done); for(int d=0;d<D;d++){die[d].stage==IDLE?pump(d):0;} if(oh==ot)break; continue; }
      now_=t; nev++;
      if(m>=NL){ int ch=m-NL; wake_set[ch]=0; headt[m]=~0ull; for(int q=0;q<3;q++) if(cqn[ch][q]){ int d=cq[ch][q][cqh[ch][q]++&15]; cqn[ch][q]--; start_xfer(t,d); break; } if(cqn[ch][0]|cqn[ch][1]|cqn[ch][2]){wake_set[ch]=1;headt[m]=busy_until[ch];} continue; }
      u32 e=lane[m][lh[m]++&127].e; headt[m]=lh[m]==lt[m]?~0ull:lane[m][lh[m]&127].t;
      switch(m){ case L_READ: want(t,e,1);break; case L_ARR: if(wn||!take_in(e)){waiting[(wh+wn++)&31]=e;} pump_idle(); break; default: ended(e);} 
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID,&b); double s=b.tv_sec-a.tv_sec+(b.tv_nsec-a.tv_nsec)*1e-9;
    printf("%s: %.2f CPU-s, %.2f M req/s, %.2f M flash ops/s, %.2f events/req, WAF %.3f, simulated IOPS %.0f, mean lat %.1f us\n",phase?"timed":"precondition",s,target/s/1e6,(ops-o0)/s/1e6,(double)nev/target,(double)(user_units-u0+gc_units-g0)/(user_units-u0+1),target/((now_-t0)*1e-9+1e-12),lat_sum/1e3/target);
    // drain
    while(1){ if(oh!=ot){ended(outq[oh++&127]);continue;} int m=0;u64 t=headt[0];for(int i=1;i<NL+CH;i++)if(headt[i]<t){t=headt[i];m=i;} if(t==~0ull)break; now_=t; if(m>=NL){int ch=m-NL;wake_set[ch]=0;headt[m]=~0ull;for(int q=0;q<3;q++)if(cqn[ch][q]){int d=cq[ch][q][cqh[ch][q]++&15];cqn[ch][q]--;start_xfer(t,d);break;} if(cqn[ch][0]|cqn[ch][1]|cqn[ch][2]){wake_set[ch]=1;headt[m]=busy_until[ch];} continue;} u32 e=lane[m][lh[m]++&127].e; headt[m]=lh[m]==lt[m]?~0ull:lane[m][lh[m]&127].t; if(m==L_READ)want(t,e,1); else if(m==L_ARR){take_in(e);} else ended(e);} 
  }
  // check
  u64 tot=0; for(int b=0;b<NB;b++)tot+=valid[b]; u64 bad=0; for(u32 l=0;l<units_log;l++){u32 e=l2p[l]; u32 u=e&BUF?slot[e&NONE].old:e; if(u==NONE)continue; if(u&BUF)continue; if(p2l[u]!=l||!(vbits[u>>6]>>(u&63)&1))bad++;} printf("valid %llu of %u, bad %llu\n",(unsigned long long)tot,units_log,(unsigned long long)bad);
}
