"""Tables of the ziggurat method, for normal and exponential numbers: 256 layers of equal area.

Source: Marsaglia and Tsang, The Ziggurat Method for Generating Random Variables (Journal of
Statistical Software 5, 2000). `BOUNDS`: below it, a number of 52 (normal) or 53 (exponential) bits
lies inside its layer without a look at the density. `WIDTHS`: of the layers, over 2**52 or 2**53.
`HEIGHTS`: the density at the layers' right ends. They were rounded to doubles by a program of long
ago, not to the nearest; as programs here draw the very numbers that NumPy draws, they are kept as
NumPy has them, in bytes.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

Array = Any


def _table(text: str, dtype: str) -> Array:
    found = np.frombuffer(base64.b85decode("".join(text.split())), dtype)
    return found.astype(np.dtype(dtype[1:]))  # the one dtype object that programs know


NORMAL_BOUNDS = _table(
    r"""
    YVRe0J@XC#0000000000sK)!4z6cBeLV>;dRHF?5>h8gQ_E8Q1e)rSqRk98MxypWlOYaT<szmw<M;Q+Q7|Z`*?KckqTqR+ZM
    o$j_mZKZwrC|>Mq?S{4dT<W_nnWn<vV0E!(^q2*@rDlo-X()qrjHK*+R#nMB$p2W3H93tshtl1boznyV51KJ_)A;fZ>SFd+*
    H$G@vIL354jj;`>+oH#&lDSpR^AEcm8H0?6(g94&|Zg?79yC?F$5*tGy2ZS8V@aFu)H0NTN3og2E2~(Ocqrro;~bG46VoqQ(
    yZq?RbDddLp|h2BeEGRhAC8Y2Sf%*zh|#5wp9P0bGgne2~EwayO!Fv%Ui2ha}y=ET-bM$r!dQ1s%ca?%d~9?9@ej?)hSc(jn
    2n$!;fQxB53nAHye?3s?hiPjGQGU&*uZr2Y0=m>jMNZ1bmj4Z8-7ugR0(ygZl-PsQSj9w6Mnc5EkATGdNP1_Fu(EM9m`P&Zw
    eVV!Jo!k!qopKm~JKYZekS{cd(%laLWS=%<W8Mz{PEn0;?%odoF0`frbl(pEK<$}j^xqEv@+7?EZ{QCASfVAu=HL$iOt>gKS
    >X==nLoUY$KekEsvO(tG2#yZksI2DnBorrhC#KD`{EA(N{v-BTjLJ^Dge-#x8n~0f32SB5abU4G<VcSXXFn6TnS9my5tW4B$
    d*x3*`?0c)U*cS>+D^5)$OdrR5I*iG~wC@8u5wco5ldHs%iic-6*rd*%-Ssu3P$zUB`A^7Q3Z|K<+>0;d33KIabrIi5a(d*=
    @TqHu8Iw&xE3Lqd0r@aGQzjPO&CDCiFWIu|wjUg!@1WC(=Zljsisyw31J$LJ3L_D+2``RES-9h-;DDd`UY>WI?`S?Lb|qMDQ
    YhUpIgW=L_Yv*`~2)wYx--{}tkeCDfj3F;33q-OD)GU^WiER`~=TIvq~8g$jBf$9$c@EqQkr|J&?AldVU%<2ySJmzJ1@ahi$
    6YMW`6YCEEN-F+^HR}%mv|=%?R_hM{`h?>2cIyuS6d>kbmg^4ye4WqqwCfK5&`I>T((4ZZJ}z#t@9Pf$=)E4}3+xX76<V=UC
    +rUZ)32QbLhKI!mhmb5TkH=2^zLjxb?grSv<y(vjqDEq5+9MarR)y?{wKunyzCDE75h|#)9eobv&e{a>Ff^xw~>Fu{_GC`D1
    |k56YUQG14)FBC+!aaOfMu5JM9kuZdk4RP3;c=-NTqvVC@e8=ubf%a_tWQf~n+JgY6Fh$SkA=l<f}y1h<7Nr0ov?v}$z7v+W
    N6Qf5Kl!tD<LQf{Pi(d`ca(~3NS-|Y_ofSHgF?d=Z$6x0tM`t1(@#7h#c2JR0423py`67CNG;0BOa9_|kSBxOr;DeeydyyOZ
    MH0}=oJe#;ZKJE_y^nxkwNA3>*hOiwcQSJ`_L4QE$S?&)2F0?2$V(t$B@t0T&YVHpJdIvsiaqbTQf_pMpc<v7Xx(0jCe(nzd
    vPwwOgzgUjLu0mJitY~pQOL}CkM0iu+9iG<l<p4z>M5vEnC=e%Tu2iRobC?*^mB4mpY9I;uFPU5qV5j>tU_ypr0x#@aV`94r
    tS{_`qpmOr|u5`3i<@jsO}E{J2U7@sqPN|5M(J(sqPN|UI)P0sO}E{RCbByr|u5`Bppb2rtS{_gPx*_r0x#@+T<b~qV5j>Bp
    @{|pY9I;F0UrMo9+()<nkoNm+lV$Itn~TlkN`y7IjrXj_wZtdYm?{i0%&n{XKt<g6<Chh`6WTd+rYa|2O}ebnXuTUcITqZ0-
    *LegK|QWbO|Dh$y2)Tka14wpUJ>QSJ`_&jtWWNA3>*P%Pn7Jnjzw*ec+%Fzyck1%j<&B<>FYT0FR37w!)LM-(ce3GNR7%t_-
    X`|S?^Y$0~)>+KH!egq=q+wBhk(>cx#%k2*U^ehBqx$O@C$vElUrtJ>^jp;XXlkE=xHmEopf9($dE5NzZY3&aH0Imj&Q|%7`
    BBb6yJnatv*e`15Bkd0WMCLDZ3hfU7H2w$L@9Yl%xVH`v)a(xcv~HCMx9kr9!7viGnCuS#c&QBvdF&4W{xJ{rSL_b}V#$VPH
    S7-nHM6u#5$q2D&~J{E>+25ylD42J#On_L+zjsZn(Ge$LWRlUZ|e^Lo*%8#LhBCzODzkq6YCEE=>i&A;_43oS0b6NuIdi}Cg
    YBcc<K)T<#YYdKk5$v_Sub01nLg}J612&#pw?Kq(`Ycgy|0eC`TPfKj{wu*2Q+c_UI1)=IF#-s^|{@>alv@S?CV{K&g=S1n3
    U{z%znKtLF~@rD`8_Oy>^(0-`Dq=;jXq*sHdnedZ4UelR$n4CW62Liadxl;sZqfO3~`6y*;9SoAj3i{uXgHy-`J`Qr}&oU!g
    TUE>b`{^Tzbwc-x|S5=t<0OAh-6oYtzJmC)juxIYXXy6Y3s&Ol@g5M7Ss{Ve(hu#kW{X519b=?mD6Td0tM%)hof&wo1_}UKu
    b-J?Qh1m}P1kXtC=GPAZ3uV2n6V?v^67b?l0n`rwtjDycq0tWjo*#Au;?55MvJqa`sLKxkA}!5s(#H<~?IIp8E5i=}I=H}rW
    xWpoG*ke@2DT3XbSNrVK&%e{m_-2|m!1y*{2io7`iTz!EHLo*#byrxN*pswS{e@k
    """,
    "<i8",
)
NORMAL_WIDTHS = _table(
    r"""
    dD#_sJ4w$x#`gW=3yq6Bv|B7ZuTYXaVLL=PxqOv845u&X`~jFeywFT83?rI6_hC3MO#qxcbaHfBFRYzB!_`bJNHU*1t-FpVG
    EJa7LtO$p1@)jjcQ!$nrjnsN^%{DQq9>v}fY@U=F14aO^^sS=KRly6FR`M*p1q?yRh$2f?>VGAr~W-QyRoD^bkiDQbtR=dmd
    *#KfR&{@>VDbJF#@JMJ$$2K(rczXa0LL8qSB^3ruatF+BT;=cPg_Gt(d1gL-j_jMfj&YcM3yO%vGp7ns$4hWU;6`n9okBE(@
    tV>K-hDM`NixM#VUe$+@XKET^R0%nqtNS<QECXJV>6FcuJQt+c8<oNN<qu?4F<DSASOgjK6NI-gRGHl(XOGJ?M<*72)6^G;d
    $a6YU&VLLLV6N;=nizagZ$<(YoNVk9vpB}9|5Fg|zooB5)!?+^=&abUJQ+DyGI`^$S{_WDW>piYK0B?FT>4UC3&Vu>9I?1j)
    CSve}=MAqsi1yf2_EE1quGfd2ZI!P)tS<U}Q`oOO>@-5)Rt>N`nvXg4KrXO6{G}G2>Q1mc5TJ5fR&TI83-oc2hL5m36JflBe
    Xp=Qf6Pl}J<qT_YX}xg$nLN_?iH0XAP%uSz7H`6M=h~DL6MH1K1{JZ9w5ZO2y3xCG}?F?r-`vVh;8ms8>q27%PRQzX2!8RF4
    W+Yi{!C9pP)dQiUP7c>BhuzWgxOVAH(T=9X_%=`)jETv|F+~f72aiDtWRz8`l}fftIp7+Ag?ayR))9Q@G(`*wC^(j;YJ&+3m
    7C*GO&+!3wiHFuC;MjwiD`p<X6%L`1VZ)l$m3;$X8pYFGunYJIajWU{hv-I=pI13kFEJGQet;2l<&hSIY<gIaRlzV5R;be`a
    G<qEVsU38```zEwJq%b__07JAqUB}9E_g=I-Hp6C~-+Ht>FONtvx|Xy&T|ol&hqAOh+!3>^NzSx91*SL_0P3_nVpU%6s|B?@
    T8j$uO(C^BPiAV><~+4L$g&$wcUZMNcwbcx0CcrH6on4PfseI3SsNrH{i?M*J#&50a>lhh(~K{B<KeYDI9{K~PyMw#!yltyx
    EQuPqOhXq9W=H)3nsS&flszPa+b+g;%c@$H!-n;LWZ_Hv9eGpqM^1tyF;_+0ll_7Qqw45V%WAkRQO>r#Pha1>u8JjCl9wg#u
    RB$jw-i2-0pDP_eHlnA9Lk3Wns5GN%Zgf)_k`-lfAmgO_;Yl2^5Pw%ComT`y$)(OwYGG=iYOS*6O!BAL@prX9l=Dc818>03x
    _N6`zUDqCL1gz4g%_PFc7-#eRBk19iAOE%!%X!;rW<L%;=+j;y#moD89>WyrWZCu&4dN#wXZkF|3tIsmymM}sKbI2^e={0i?
    9MmV`VilPH~VpO?2?$vO+j&Qj=F)A*J%Z#}^znMRi8L7EEEZNnJdBwRr5p-`W?BTgQO49l!a{jqIk~aA{3>&&UTgajzyEnQ#
    h`S4(e^k0Wq^U}BT5-BOJu#qUOpdxd2=SjjR;#)^&h=W&c*wduHnWT2wB@=y8ll5a3j@16TbP>gd?33#01V)u3O>6$13k_`w
    OhM9Cy76~eR;b)Jon}CWS6@<ZY71=Yqh&PqQEX|lheCAgRX&_-0{0Spcd?GND#a{Eqd_f*Dky~91U(0j7_{e1&8biW^BAX7p
    CjrW{bQ$tD-i&kE*;pkk&iL;mN!_H{fV6Ug^9%ZjXyH1_`}9An!L2+bF#}N5(T1-blSXBk|{!5NW+UrTf?PbBVn?aBd)(397
    w34oUp@(#pL&H!f0@(d)fD9MVbq1`WPE_D1T&bS}O;h|$5B98kVICH|K$0CK)O3co5#A(Xy62ygemfwsOpI;RkJBiX(@sq6t
    ^2>iZ0AydMNG9SM@ZB4fiq(Z+uXaUI}UuM5Nf|rQ|W{ST&zanuMyRN@Hh37BQVAH=m3-%bnS@^#^b)eHn)DFNrN6C)@s3E{S
    s{*NmsWiYm$Mrr=+DE`VezUFiJ6pg!XeOs4&~Csy7cOIun1aAORHEnzmzKah#K3WN&8omWNYw7pJ-@&_Fg>a?>eIkHlVuUl)
    abxGwx6c&|NX!`L2w`hZWF;gHC?-#At}K;Z3)C_9Y4W5J1$^IWL3dD^X{EH`D?*EVG`1G--5wBtm{rz8k)g8jxT?At+By8l%
    {d1oXNpFIj-dU>*2vX0omfhpZdW(fy@M*yc5Da?$d92M=ioUB%G|IMMuIs;8=FYykWvTE?KDhvV6ikcn){XE||hRQVJ?lH?+
    b$m)n*x)X>5_^?0eV4er7`?ygqS><hy@qoinFdn&^`qY|zK#7V<EK&Uf%(rLpy3PDzqvx>t!`iQP@b*#fYrUVzWC(pw?b@X7
    W+w#La+U2>Nq!+|IlwMR7m_5Wi6*{Lx&Sb<qyhEIIVvWQ+Ct7QrbGO7i0*TEHCF8_AL9FRhpAf}7LVh|@5kSQ}8{|r<v2n#b
    *^P0Fz@^1J{?IxkirmFKOdf{MX%@yj>S_Rc&Qr!b!{wj8K$XTkGU5r1Yum;=G<sj~C@04}a|Q`km3hZJjLz2dE!4+6H1a701
    3Ab%6nv_`539&LmPBuq;4aBLt5-k)?#szMT6dIq+>gpUvHf^BADGKLGpz}Nv^&i_
    """,
    "<f8",
)
NORMAL_HEIGHTS = _table(
    r"""
    00000008hmhwypHYDDip6{&1nRJZOwckn0R5kKxfmEHuWZ`18R^1N3Dl5p)m+!>*GNfhlr>n*3KGrjCTe|V|RUTW+=>bmaP9
    2@LEg52Rw>(1*xQuU8IWrgcM5ZyF_IzH<^qUdZtD*5U^1SNX${<Z2q;mJ_di*)Kg53lw8sx<09*dJx?JND^6fd(XvBDv{5!F
    pj=Mt$i&M|vB=kwWP|PjNB5@d)WZs0!v!RnX`^0^hnwt(fRPth_h;>tX0WZqHT^1uW=4%i<tQ?e^zCSZJJgn!@Kl)v%yE1CQ
    rFR@iU{A6(}@5^X>9<tgVs?t1FFQ26FQiCSZxSjXl+DmzhL_m<{ABjb`PCuinA7z|aI;y30$WhQ`_Bnjp}YX3@a=-TB!iCoC
    6DXrx{kBv+w<bUNqMxKrE6I10s)of*2wI=01XSN{d#QNkvz)nd|KhNYpcv9SQA*AF#5>Ve?XnEv6c{WK(5l`el<6kw3871UD
    f?HUbe*5D;qcN`#KGNeq4$WewRjK1Y)d1Qn!+_&I=}`5HgjnN0H9By~moVc$?>J=r`UvAc?mOyLtl{E6N|o0Xs=DGo70r{5@
    {{5}?F0oWgl*zKgxio>T}R?S^7k*Pd?DgLAeNG;;QQe}X_-|1ht}ag5z#+aak1e)P&}J(n~dQ<+Bt?21!&<voT*+AtwZ5II3
    F=ck{{te6In8%v-{vbph7_q5ZK^9uGw&nrnKNcfnAv$c9GyeHazgmeQw}CE<dKPyi4FeDuRpQF)83b#LBpZ+y>x3p}l*Icgf
    #B$^faSorT{&^Lj7KDMH^rm5+XL8vouuR3E({ZoJ+<#luc&BYNIHg_~dMI5^%v2|9L1t@hnNu~rK*f3@8|Gu|d-t#sW#fDi(
    qHZ<KoZCkFi8T8ygNT|SbRkYkc$JYS6=ycpaxGWuS(ly*a7iwXA5%=3ak!^9-q`2EZ8xse3i+bBX$}zKI#5~(SQiY+OPXF3J
    o?2fzDZ<)6fY_u;Q-#_;O~4@P%ShTkK7>X&k__5E-;*9*rO??w#=sba1eMu8lb_(*u36bX7t1r7qaN8m74f<J;p5mph>_kuX
    {p#hwpy&HIB(cL*$t|HPc_&-5!tvAt^3zMuoU#KP{P+g>r#@hIf>Ul?XkycXHeHaOkt@z*%#M8s!S4wj^EZlA>N3shNsp);>
    #r(!Ee?-73F(3Jvi1s$kKpx`T*8HM8bAM_{r5jzV6l;Hj~vq00BL4vs~3b?K@M#Zzk10l5M|^YVg!QqMQ&{qq@{T)M~At8HL
    n8{v^Zi%um!m8G1F*yc*O$+tQBE=;hNtu0!#BP_ffLc@qd|^L*1kp3(Uw(MZ!jFZNnZ=@ipHW(Og6JK@ql-9MH-$F0&o9<fb
    9jC#^PiQX3<ibv8vp3L`oz!cIy7J(S{F5=NYQ1HSz)vwV%=u}kgvVGA%XYMq+$4k*aBP7pH6B^M!#0iI4mFUnv+Cs93O}EfL
    Hban)JBH9d+37+eUscdQesst7w<OR%#gpHOi|EfkH8Qx25Qxt|(wOON{wL2rM4ZW_RLIUh-8?9=5^2sqgmFa{I10``3XsQD#
    H-CePf@b?woT1H%x_+b5Ae)CQ{Qo!&63PNN1fQW@HNaop%}h;c-hN8sxgOpWPQs&I?>Ehv?0qs2N+kPXU57uekK_Uerw7<J$
    @}R_YlfITK>|%(zeMzCwyvO5M9YXY5H`(uLH?HTY-|1u&T&EIGTZq5>m)Nb#WhJ)%nLiBco{3_@T!?rnP#Ud`ibZ7DtwTVDr
    X5T=F44q@2b-obj!qM@Gg!`Gfd&O7O)$Y#sB6teV9?HE77GZAHaD!5`zTjqt=jEzb3944lM2)pY~H=|{vrt}$tgCG^8T?$_w
    5zo5fEh^w>(xJ|=9Wh#7x4*SAC8V7n4!>GbPw_byy)mFkkG&~q3Mg_t@LVb0T6tuxVV=buVKx4r_xo)Bz%M!sqx(QM}v%<hX
    g}=B<`EtNNDt!i2og=_MEFx>mKB>Py91c<`{|moAOQo9fdvCr!kLY$`wbQ*n<&nL)t2n(s3UoV3U!J@_6%Y$(&;-0cGve}i|
    7*KHGxo~q?9;kGhGOb7nLN5b8C#v)1g5z^tDvNHFc7&vQYgQj9DBGw*6%(6%I3E}b`h#tIa9YkOiF2UYrwWY7)^yFVJ@~mq-
    Jzi8=bX3t}FTmn+&x-6CxWx;e50|hMFcL@9ncca6Z}O#b2{O5iy(3X40}hkqzBM(?zmBeTkR847#yDofq=Z6fdzqC6*N|?WC
    |jm*g;>mm9D@HEwJxEGDl%fl;zY)fTQlV)3p1E(xtaEGj4uKK-jda9=o(2lJ{wV^t~nkm{*FtF>q<;Nz%29w)DN``)KNWYCz
    i>D#71)UEP7vf8CTT_+I^UE8ET%kG%Y^4+69m-Id8eBz=%ylNkx1?izb5rCF1nDL-L#HAS5f%u<4b&P`B8WNsA8VSvV88Dnb
    `0FB0pHiAX3c&!j(Rr9Zg1-y&+NG91WU%}4>eiG$6JD#0I1Q6O5-?yi14)rTN!@Z!Dix1EtdCD8jiie|c%+RD1VM;D;LjRDm
    g|H+k}s7hlBIz^H)!nmVBvf}UAPR{sGfE|{jsnEABu24XRyITpI>D^5BIsY1*TL#
    """,
    "<f8",
)
EXPONENTIAL_BOUNDS = _table(
    r"""
    #+M`~6jB@j0000000000eleWaTYVD%5IjGQ^==pduCNX=x0@OOd_)=dC(#=K8fAzN9hDpaayeWr{u><tvKVXCTYen?a4Z+yG
    |3$R$epa;2?QPhHh9!=dovyYqPKh(i&`E4Yy@u!LVF$nKCTF_4VNAOp72hw^{yTOR%NsYy~7>=&Y6es_SGH$h*oZ{6y_cP&>
    S|(ZuA}iq}1JZO93AMww9+8;|w1FdiU{ZV;3I)a3w_y@*p1obf{4ot|=b?GF7>cu`wS22EkWR5;-3LOlfZG;y)h%`iR#uGe#
    c(4musb5KJEcA~Re}hfyB@!0f{bp;jLNmYE6JW?LTsjL;B*;9nmAa#uv%6l5O&c$S6s31}Yx<^n4!#cLk`^yD%<OK%?lI`NQ
    kpmHAo)(K6Q$aNn8z+40y$9NwA^glropL-twik}BYQ+^)+I1%DI=71jnVv(&qT7w?|61i4jv4tN1VnVWs?S~%#`gD_Z5Q-lF
    tT{cp8;l<SO3+2j5RM-J7Cr$2@sA$>;8=r}y^$XP*sn*dcat9g+GLAQAeA2gk~m{{xRxIPl8BZJL6{!^fVxKEx|tsU0Doz`C
    Yv7sdT|?8g`6J%0@%-4*PR~#&Y@vv9iJZnz%~gKSfC#OI5RryhoK(;{KRW-t)d?Qf(FhS$)g_tqH6A6+oT@=d<jje<fR_~f@
    kDj<)$A1#2%&G-KQS_bg1Th&Zr*%?qAN6x2YchSh%flnW`TEGJ;rMbgLf#gave?NUR?K=%2rW7Ofuuz=Bsh-mM=1Y#s6lpsp
    VPey|uMT(2Jh5_((060jct^xuIN#IPR#`ti0<aIqf%I+n7Y7qTA!N~qr}y0RYt7*2m7ShF7h48F;x@v|QQ)~pQShO{35{FBG
    ?7quS%s{O?PrL`XbSpGLCF18;43IWN8v$h`qm<P2#HMbuCsD0dMv$r1r2)foDF1Q~6_D2JIrMMpebPt-98Mz+-1ai8Cin$*E
    CU1FR__-edhT`r$W4a#z7VJSU%eo%`M3J;eFuNZB;-s#elDi)Oo&v}`^1B}Zlqu3VPrM%h)Ii~*sk|Qmo{v<D0lgmpoO0g#R
    =pnpYSxPes=XfoKtId3`n?|j-ehweNxmNdUTMidmA)SUD6xhx-@YFJbYb51Cchs5;);TvY`-4>#004^u)iMwu>B9Z@xLDch(
    !WHF~A=HvQ%5oZonS^CKQWps=yxrifNf6<iH;QWQr;I8^Ip{LK%JaQNbSoN)LA*hQS{Iv~-?*xWOL)Lh2wE>A@cW-UZd}7s4
    L^{)0RXMZzBd!cT^FaKaw|4r7onn!+CdMu6!&!onW_w8qk+=)xZW>>@#B4Z|M*4xHYHFvA}J#(oP9Qo|nr_-5bwal;<~hA1j
    gki#DU`j>PQt-~JxNHYOM$ip81K&#B;;lm#Qs7;Rd`NJOoU{JVy5X2t<X#ID1CBz>9#=o`bIK&?SDiIaWO2i)k=tuM`Tf`p#
    1VwEBX~Z7@vH?&@cf=n6xce&!gTx;I_J2h_jl>@S8q%5PmBb$aurS>Nox~piGPHS-qQoBn{0EMXro<lrjQi{OsKg%tp6V9Ps
    l*=uH2Ogcsl*=upeRnQro<lrbS}uSqQoBn;w|P8ox~pi^eu(VmBb$az+NWYjKm)RdL!&Rg2W#H=H8a(b;KV4f_{P4XT%=>Ho
    %<)Si~OyATDriM#LWgn9B<XGsGVN4sH$09mF31_Pds`2E-o#V#`Rf?ZY1cJXt=((!(DBw2=kgwZk6(OktVzmct(al0{kocEc
    Y4aFYh}Qo|nr7$~yAEyEuGh<LqU2E!i!V)Dzs+`=CKo}anXu)-ez@cfUAg2EpFWbt|0QNkYpp3}Ch9>O00R%eXy=)oTVJi9l
    Ru)!Yy5Y60%b-^D1w$^m6H^CnO6ePR$_P`$iq)iw|v%nt!@UM%BY``A?Wb=}sBETO2xN;A1)xRGAjz}rpgufpE3dS$RFuxxF
    #te4{*}fkD+I=#BeZC(66sAiF9=;y{2t+k{y1gF&CiuChQoSDl8X(4F=DZ&O<V`Gnb-W({s<&gm|GOUmqUJyHgu5RAjM1Rk1
    iK#qtZ*7Nf4Uz47`BqX^SK`Y{HxS1V!0mx7D^X0%D5i@R9kj-E4Uv3T!~wpg|{C7lvUM0*tQ=4LTTCeBDNm@;5TnfWwjpw(r
    LfHp0pnTM&|>_&a)o?KAcm}^s*lSQYb_+5V9Wt1eRJpAh90+!r?+NB(NU<rg_9M8?PS#1mR~_1g;+daxK4|-mD)03I;&tsH-
    0UDF2!BVX7YhqGoSp2&o?cJdIGZnx`KC6!Os~7p5No0P2g>d!!!#l)%N4#-bkp6!U%b^q?OA3chPI1fL%Oy!m-6@thw3#H$r
    VxSAgTxG#8HRhS<Dct6mq!<8QZ^6}28{gNL59ORnX{Er_1_=R(xxr`qG29`(cDv2Kej@tzJMTH*#ngce&{eT|;Ch0kNLVO<p
    %qm!;0Cyh%93&bKAaNf6DmAw>f@&WCX5y#-0An8j#N$tpW?CNrauLo>a!?-t+HYKD$3!0hqFIWg<u)Gx3N%nO6eb@46a;$&J
    `o=P=F3<5uJ#@P9u<h8jME+fuq_fErlKAId?t&>VObskunVj!_T3!-!06=JP1_s*
    """,
    "<i8",
)
EXPONENTIAL_WIDTHS = _table(
    r"""
    !Ck+U>}1hA89`l(omgNzD@|KTves%mx{X_@HIs2Xb1F*Z<|1`GfO^9FkWhF$%(r>((KvfNn7wVc*zA2gJY2>}@H>D!aQ4<D+
    i-zAGbY-Q0+@n4%5FXWh_iz{A^r=-6~%-+!%703_|1hpy(_2iK+lFe8PFHn&B=#6Z(!3@S-yxo(l;VifUSu<15#bS$d`&d#G
    ~EarG1M$i9d|jdtZz^Hhl3-qCJf~T66JuW*Ck<s!w0f4DgOT2{LG1(!`HESaoXcc1w^v{D7NBNVAYUuk}fX^BIvmpx;aDjDL
    |l=Se>4CghPkF8?@X(npd!3uq(Zo~n{OOWG!-nhcXX0)lPg(ruGGpkg7>Q_hn-NM~@$C@z#d66ZBvT#b}GlMBsj`0JEBO>cN
    921=DY{l2(8j;ED8&o14^m;{zQ;AjkOEn${CM5+2>Q@xfvyO4Q#5gC^}b9o0NZgiJCa)Ew)Z_k%JnbrPN8!DJQ?BOdfcZ8Tc
    D#g%Hh~AhyM56t@Q#hGCI1{Zx-jSI+zXShuEbEy(N{AG`LPVN8VbYdUC7qf)$t3bb*!7w`o0m*^Urw7miH|?CzNVWznf_Um`
    Tm<cpVDxe6IYx(+gida5U-p(`{wYD@&=tejceHPy<VL>SCB$#b+(;6{xN*_8xEd4L=ew|v}K+=VjJS+LA{<lpOgaP#uT4Cwf
    <KtMr@xvp{WFA!o#0D**uyNpADcqVzCYOT{)mU_;zv}A7!9CasW%a<B*^{Hvw@2t-PQ-W-odmeCVJ&6|5IIQWT*)zI||SFhH
    R^`+s-g7i^(CmLol>37DZggHk=+2E?H};>4+t5b&Wq1rD*(Cmf<YDWk%(O-Q0VpBT_PgLI-is?CdZ$)KV<T|1>@A<d#ZAr}J
    ?jQOHG5qA503MQjGp&N>-ol>Jb@EV1hMt`F`{O`|92CSnzZ8MF)-Pof%#0gLI%>|@9&}>HL*D|C$r)+VQ{9mLz#DmEEJdLD0
    q!?=*n!2Ps>P5@+6zHTp`vBR2t`(&`__Zv=XG5htCvP#lL2;!#`J7H`J)fmKHIot4Tg|0BCeK#-o%^LcE*f*=1S+OHjGJ7Rk
    yxfY?(5SVMTe$5-#m?eAhxDF2&P%fB;}?&`>9Y7QxvB>90dAdtV5?fFwu9>F>|Lp3M8?1<f5lM_ZNL@#nPudcXH0m)dHwID(
    2t17Bi?k=Llh0iDRfdR1c)jE|jP|lwizA2*s#86BYjR7WSw-;d71zTqmhKih?z=*jTAN^t(Vgj*6)~T?5D3eY~kWQR&^>sP3
    seEm_ct5Fx5Okj7Ruwo|G+5A)D6n}(`9dS!v%z`3eC|E$WLDDA2|wTo`n(;%xnLM6}m!&Iw0wofv9`iQGM5GDuPc)hDUh5ap
    ^K=P|RE#N{<QzxuEq_OIPvRte@`y(URUy`gmY^9a+T*$0EfN|}EtNyG!t@1EIO*O4N{-Yl4Lu{=)3Z;!xk)y3Ve>KudH`}c|
    n@}dSHxsTrQlu7qluNEWe<SpoPlT>Kcy>w^YrU>KXpvj|==QEWf4rb>%P_Az&|XoP6l<?M<>BwM#-*=3*a_VV<lwJ7)Dii5H
    x95o8#xj0G%T<@qa>1^Yf7*@+a?ju+-R^o53M@SiHEQ}8OSsDbEdF7Z<GM3oW-y_x6kiT1?8|j&hHCmuLQ9?N)?i7oFuV4D>
    `rN%|x+0!34yGMP;!(p001*1ctFZAb6su4X3d@S}J&^VaTyOa5I~#0_w3mqV({S@(Z#&P~}fjGcK|`x;sGT#!#|6rrO70uXD
    0ID^o)0?v}DVQQJkdhq|&na4nV&eBQD=WmzU!&H}SM(5EU3fhV&(Wyw3UmQ1reR;Y~l5puIULs2xG^_R0egNu!NM82~;(B7?
    #0p+tit?u>dFATIi_(HwO(lfL?EXf;%?OU`wGL+MpgM_p^Orc$;n60!tC$SuRFxRv^2$i`APXV<&vZ}0c_$#$MTBrC1F;}%b
    VMH5D{erbT2jMvSVXw73p1p_zWZbnpc^C+n2nx15lrDQDRXDahGW5e>PiM9~?nswP{g$>o9($TEWyiKW2PO2ejrg`a7}8wMe
    JZy+!*RXhJYBau`EhHt(vY`2({>bnN5!{15)^Lfqx!cz!@j^Q@i4eNLUU*aIcT^%t6OQ#g`l`Rl{Pzq;@P-7M0NAhS`@iF4l
    4XK`%k$%*cy%T(2Th}>e(bZ>dLu1c=1U-Rtma2J51<9B}=+I>V~btXpOo&#6{SGGts&{3bq5lnHIY|59*Onv0b}7UfOojk*2
    #mckfHyRPnn!r{Kat7CyW@^vK9U^o+bbf2s2958k{y#W*KxjWNAE>^tmll!v`MpYcwwP~g2hU<ny+@;kmf!GrTEubRF*O6pK
    &!u-BGr}vSUZeqVY<;M0y{>#5SF6?5n;vB#{?~e705mvxFPNmDu!I8i`ph#VKG0?y~rjkPgs1d<DDnxZ>cvitY*21&A1E0Y>
    eEP|tyz9X{pOIO%D?P$IrK(A;^^?Lp@DW6c<M6^fUiZu=?o`7(VYtZ0PQk-GViV+Mmp8;b(NRau*SW+z_H)lX*h<Ab(i3yxd
    hW$Ma=%M$XR5|LFUIQDP>07n8SV1spOeTug?mU1-08_Y{Bhb*p2N#LgS&ny*~!j4
    """,
    "<f8",
)
EXPONENTIAL_HEIGHTS = _table(
    r"""
    00000008hmHxY>CMFs9Z@&AEPrqJv^CwuFA0OjjHDu3n<4<YM6=lWu$x_0V6n{8DUm)_|=IjU8}F;wY4FVfR?qtxg>xWxu|=
    w0YPCNU%}itgt>e$)w@ZiVMRV@s)9yCLU4#u$W2!@}l223${V`e)`pX0NBg?GWZab*xNjJ-y{WbBEf3m~7=gnu&N7x*p{}ul
    P~HX4B+9Y2c3gYKr7PCE=*AnM341fQzv!%l_j(6w%>C+`HpH+1&`It$O1>7-J4aBRk_iUfM<DBmLq(Bu^i<n84ycy)qFIZH3
    }Lqfm?@j!WV{$UcF(>Js8ViF=0`bKBuRB|9F+7^UGq?r+X*&TrvAoE9^@hdbdvjl&#DISAoDD;_I>*wx@aD$rDjTcqGWeLL<
    kxpUw@NM+LN=tJN?B=cag;uPRNc10onJ<Z=g`o+JFEpp#KO+xF@h8W*Jke!xGJ;2^SQPX`kMQPqY{5RoslM~)Q3?Zk89lzZ_
    dhNM=*=yZD3mSguy&2s<lHfqx!N}Y{VEcpF+<4qSgQX781}fY?weGGGINaMmhzprfX^-1KZ-7*klSA7-U+*Y1u=v_P<@Wv7x
    USkiKmns_r)And^dWU1b{*P3k~dmuAJ*AFsCx<WosZc+5P_PX>`B=_1YJ~&1_jwaIbF8|=fK!Mj6b}DiGA2VIAKJ!={ndyS<
    bd;1NqlK9)QN3(zn+?<8oeeQ+L-t>W#24f;ZPcot|VqTlm&Loay8x+qu?1pAE*3{(IIx<R?f%!amkNc3AHpBLdbxZ0<289>&
    !_@2NU$u!_|`=cBzL*H6_y^@-k%j}_HF9r-2>*W1)T)7py_tD@9D@4kR532M|o;z1be?lIIqPN6UYTKdyJg|e$KNW;@V?|rd
    Hw~W(2-O&6frB>5FH6$^{4<XY(a6&mC_3P3<Vj`|aQ@7GTDRxCyD1*{J{dPxva!=Af|9%VcFC5Z8+X;L3Ug^<4TD+R!{kG9R
    f*BbM3x&}??~&r(gj3N!x}UntX(G`-Y^K>#xbe_GGgFWFZo$w$6F%uqjFHek(vV&74r0(hEPQ!@^)k>uYDbf+J_OJ|RFnTq(
    yPxuem<65=TFZ+o8agVy7bOJ@<3StNSe++r-LunjzG>oIZq-;jOWcixbEW`K99{m{V}v4qBqSypV0O=w&2V^0vOIuc#6zF?y
    tFB<}}PdHAFdQ{@=?#rQ~vazKhF0KJVPPBsj}I3tQ_#FXhTVNj$(y+>**ayj<T7DnZIW62;`v7VybGBNjg7pr6S<p_1mF#!t
    yVdAlWKh5*Sw)nZVe-m%C(`5KJG&11+v=I4}9QWnTRt{a8OYRShx{zjj<6@AA)IVc*rQ8C9q>V)oN9p=VADB7l8cbmpPtkE!
    4UQxzBF>0{-&<Dmpw!%~i&c4Mz^>{8qRCdKbNsI?=VlKr$`nEh+_vXYumN1yu5un6B#>_3ruvx@Enrb);(-Xu$1*!Ojch18<
    $<>r5or%LguMGO%LPf(rZhgM0X92@MG|vQu3ckWWK$&22Dtp2|c<8%(#yG-1Wy(FT-S)vhX4WwvZ?(Zcc&_l~d33=)FLB8r{
    WHNoAQ$ZK_w&F%FSb;BX|%vUzNNSBP<6mR1b=RNtv0|vjq1y${P4d&6a*P&g>}C_Ji~*o^ZLF&%(;#PMuEOR`?_KEdI-Khn3
    Js*k&wMV*G-WIhZ(&;SN(u%Tcf-`uMjTu3@*Gsk0x<fnz_3_NM$ut0!F((WmILcL({rHw>a57U17REDD+0qP4KxtaBDM16o9
    !uxpd`-uMoLEJ5ySN9-_EEy2LvyU^KWt^QPB;bH}$o9y}R_S6jC~wibj)3-Go-Ahs~vjfJ*9_uk4}-W#?*KD&|a`?9q^Hqcq
    Q<w~_bDcO+nn&Y%TT$n@C8hx}s4zVSjWEZqQo}ZhUce1lT80W?rQ%<u#(T$XL_Uf`fa0Si~VTiInjGZh|k|wf0K%;M{iN&!$
    l2dh$MrE--P|8+^$OW-KI~#`?52vs{7s&P38A-4|c9v<n(ATd&H0VT`^d7H2<+3iNo@cH<5Lhuu&atgON_idwgZ->O=^+PXy
    h^M;h1tFkdYP*~gn(+oyXmSwIPn`tfjg={OniHS%8sc&ZFhifm*c2EYdJa`=sBoAo(QY7ypg9rQm?jo73-!yL7*nb@<paU%F
    @LXRidRo>&2GxJOHIX8EYmKt6!u){}}&ApunR)t`t9h9V4SZ48T^&BZs0t)DrVwwCtfjp|csE&{Ls5QPzA6dc2@N?)nW`vL>
    KEkeIK>_9UM_Xmn9}uK%4s3>!04klma=a9H|Kp}w0xn@*DE=AxQENGcN#XNs9WXPN9%D0P@Wmi&j>F=LlMcR-?Yi&U0BQ39)
    `JxP^6zVL_6Q9+bHgk3Qu(maztGCH~8$vcuiUte-mMLv-~@B$tQQbdqH&c}(~{hN+IS0`>1xwecyEy+Sv`q+v;y{C_8>H>*B
    ^>nJ{wls%7%NFDdlWv7SVsBBwxUhpiadxxqY5Rdc`PW}5@=kz1#a(pzQCEFGHb|G$=_7hSAU5nbp9FV5{UYPem-=%*LqJz)J
    qK|=5lhX1vsi3D|Nf!#h}dR7B%|S|Ym{L>B|Z#PwJTXax%`dy3bIc>OADVe9K$_7
    """,
    "<f8",
)
